// SPDX-License-Identifier: GPL-2.0
/*
 * Finds out what blocks a connection, for schedulers with `resends` (resend_rules.h has the rules).
 *
 * A connection is blocked if its window is full, or its send buffer, although subflows have room.
 * Its first byte that is not acknowledged keeps both full. If a slow subflow holds that byte, a
 * faster one sends it again, and the slow one's congestion window is halved.
 *
 * The queues of subflows are read, and windows are set, without the subflows' locks. That is safe
 * with bottom halves off, because the guest's kernel has one processor and no preemption.
 */

#include <net/tcp.h>
#include "protocol.h"
#include "schedulers.h"
#include "resend_rules.h"

#if defined(CONFIG_SMP) || defined(CONFIG_PREEMPTION)
#error "resend.c needs one processor without preemption"
#endif

/* Tells whether subflows with room have nothing to send. */
bool mptcp_is_blocked(const struct mptcp_sock *msk)
{
	const struct mptcp_data_frag *next = READ_ONCE(msk->first_pending);
	const struct sock *sk = (const struct sock *)msk;

	if (!msk->sched || !msk->sched->resends || __mptcp_check_fallback(msk) ||
	    READ_ONCE(msk->snd_una) == READ_ONCE(msk->snd_nxt))
		return false;
	if (next)
		return !after64(READ_ONCE(msk->wnd_end), next->data_seq + next->already_sent);
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags) &&
	       sk_stream_wspace(sk) < sk_stream_min_wspace(sk);
}

/* Returns how many bytes from `seq` on the packet carries, 0 if it does not carry that one. */
static u32 packet_holds(const struct sock *ssk, const struct sk_buff *skb, u64 seq)
{
	const struct mptcp_ext *map = mptcp_get_ext(skb);
	u32 before_map, origin;
	u64 first;

	if (!map || !map->use_map)
		return 0;
	/* Mappings count the subflow's bytes from `origin` on. */
	origin = tcp_sk(ssk)->write_seq - mptcp_subflow_ctx(ssk)->rel_write_seq;
	before_map = TCP_SKB_CB(skb)->seq - origin - map->subflow_seq;
	first = map->data_seq + before_map;
	if (before64(seq, first) || !before64(seq, first + skb->len))
		return 0;
	return first + skb->len - seq;
}

/* As packet_holds, for all that the subflow has not had acknowledged. */
static u32 subflow_holds(const struct sock *ssk, u64 seq)
{
	struct sk_buff *skb;
	u32 bytes;

	for (skb = tcp_rtx_queue_head(ssk); skb; skb = skb_rb_next(skb)) {
		bytes = packet_holds(ssk, skb, seq);
		if (bytes)
			return bytes;
	}
	skb_queue_walk(&ssk->sk_write_queue, skb) {
		bytes = packet_holds(ssk, skb, seq);
		if (bytes)
			return bytes;
	}
	return 0;
}

/*
 * Returns the subflow that blocks the connection, and how many bytes its packet has. It is the
 * fastest that holds the first byte that is not acknowledged. Returns NULL if `asking` has sent
 * that byte.
 */
static struct sock *blocking(struct mptcp_sock *msk, const struct sock *asking, u32 *bytes)
{
	u64 seq = READ_ONCE(msk->snd_una);
	struct mptcp_subflow_context *subflow;
	struct sock *found = NULL;

	if (subflow_holds(asking, seq))
		return NULL;
	mptcp_for_each_subflow(msk, subflow) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		u32 holds = ssk == asking ? 0 : subflow_holds(ssk, seq);

		if (holds && (!found || tcp_sk(ssk)->srtt_us < tcp_sk(found)->srtt_us)) {
			found = ssk;
			*bytes = holds;
		}
	}
	return found;
}

static struct resend_path path_of(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);

	return (struct resend_path){
		.rtt = tp->srtt_us >> 3,
		.window = tcp_snd_cwnd(tp),
		.threshold = tp->snd_ssthresh,
	};
}

/* Returns how many bytes of the blocking subflow `asking` is to send again. */
u32 mptcp_resend_bytes(struct mptcp_sock *msk, const struct sock *asking)
{
	struct resend_path fast = path_of(asking), slow;
	u32 bytes = 0;
	struct sock *ssk;

	local_bh_disable();
	ssk = blocking(msk, asking, &bytes);
	if (ssk) {
		slow = path_of(ssk);
		if (!resend_is_worth_it(&fast, &slow))
			bytes = 0;
	}
	local_bh_enable();
	return min(bytes, mptcp_subflow_room(asking));
}

/* Halves the window of the subflow that blocks the connection while `asking` has room. */
void mptcp_penalise(struct mptcp_sock *msk, const struct sock *asking)
{
	struct resend_path fast = path_of(asking), slow;
	struct mptcp_subflow_context *subflow = mptcp_subflow_ctx(asking);
	u64 now = tcp_clock_us();
	struct sock *ssk;
	u32 bytes;

	/* A send buffer that is nearly full is reason to send again, not to penalise. */
	if (!msk->first_pending && sk_stream_memory_free((struct sock *)msk))
		return;
	local_bh_disable();
	ssk = blocking(msk, asking, &bytes);
	if (ssk && inet_csk(ssk)->icsk_ca_state == TCP_CA_Open) {
		slow = path_of(ssk);
		if (resend_penalises(&fast, &slow, now - subflow->penalised_us)) {
			resend_penalise(&slow);
			tcp_snd_cwnd_set(tcp_sk(ssk), slow.window);
			WRITE_ONCE(tcp_sk(ssk)->snd_ssthresh, slow.threshold);
			subflow->penalised_us = now;
		}
	}
	local_bh_enable();
}
