/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sends again what blocks the connection (resend.c). A part of protocol.c, whose static functions
 * it calls.
 */

static int resend_push(struct sock *sk, struct sock *ssk, struct mptcp_sendmsg_info *info)
{
	struct mptcp_sock *msk = mptcp_sk(sk);
	u32 left = mptcp_resend_bytes(msk, ssk);
	u64 next = READ_ONCE(msk->snd_una);
	struct mptcp_data_frag *dfrag;
	int ret, copied = 0;

	list_for_each_entry(dfrag, &msk->rtx_queue, list) {
		if (!left)
			break;
		if (!after64(dfrag->data_seq + dfrag->already_sent, next))
			continue;
		info->sent = next - dfrag->data_seq;
		info->limit = min_t(u32, dfrag->already_sent, info->sent + left);
		while (info->sent < info->limit) {
			ret = mptcp_sendmsg_frag(sk, ssk, dfrag, info);
			if (ret <= 0) {
				copied = copied ? : ret;
				goto out;
			}
			MPTCP_INC_STATS(sock_net(sk), MPTCP_MIB_RETRANSSEGS);
			info->sent += ret;
			next += ret;
			left -= ret;
			copied += ret;
		}
	}
out:
	if (copied > 0)
		msk->bytes_retrans += copied;
	return copied;
}
