/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sending for the redundant scheduler (schedulers.c). A part of protocol.c, whose static functions
 * it calls. A subflow sends all bytes from where it was, also those that others have sent.
 */

/* The connection has sent `dfrag` as far as a subflow has, so new bytes begin behind that. */
static void redundant_move_on(struct mptcp_sock *msk, struct mptcp_data_frag *dfrag, u32 sent)
{
	if (sent > dfrag->already_sent)
		mptcp_update_post_push(msk, dfrag, sent - dfrag->already_sent);
	if (dfrag == msk->first_pending && dfrag->already_sent == dfrag->data_len)
		msk->first_pending = mptcp_send_next((struct sock *)msk);
}

static int redundant_push(struct sock *sk, struct sock *ssk, struct mptcp_sendmsg_info *info)
{
	struct mptcp_subflow_context *subflow = mptcp_subflow_ctx(ssk);
	struct mptcp_sock *msk = mptcp_sk(sk);
	u32 room = mptcp_subflow_room(ssk);
	struct mptcp_data_frag *dfrag;
	int ret, copied = 0;

	list_for_each_entry(dfrag, &msk->rtx_queue, list) {
		u64 next = redundant_next(msk, subflow);
		u64 end = dfrag->data_seq + dfrag->data_len;

		info->sent = dfrag->data_len;
		if (after64(end, next))
			info->sent = after64(next, dfrag->data_seq) ? next - dfrag->data_seq : 0;
		info->limit = min_t(u32, dfrag->data_len, info->sent + min_t(u32, room, U16_MAX));
		while (info->sent < info->limit) {
			ret = mptcp_sendmsg_frag(sk, ssk, dfrag, info);
			if (ret <= 0) {
				copied = copied ? : ret;
				goto out;
			}
			info->sent += ret;
			room -= ret;
			copied += ret;
			subflow->redundant_next = dfrag->data_seq + info->sent;
			redundant_move_on(msk, dfrag, info->sent);
		}
		redundant_move_on(msk, dfrag, info->sent);
		if (info->sent < dfrag->data_len || !sk_stream_memory_free(ssk))
			break;
	}
out:
	if (copied > 0)
		msk->last_data_sent = tcp_jiffies32;
	return copied;
}
