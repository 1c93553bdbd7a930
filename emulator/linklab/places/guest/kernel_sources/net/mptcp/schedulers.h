/* SPDX-License-Identifier: GPL-2.0 */
/* What protocol.c, options.c and pm.c need of the schedulers (schedulers.c, resend.c). */
#ifndef LINKLAB_MPTCP_SCHEDULERS_H
#define LINKLAB_MPTCP_SCHEDULERS_H

#include "protocol.h"

u32 mptcp_subflow_room(const struct sock *ssk);
u32 mptcp_subflow_segment(const struct sock *ssk);

bool mptcp_is_blocked(const struct mptcp_sock *msk);
u32 mptcp_resend_bytes(struct mptcp_sock *msk, const struct sock *asking);
void mptcp_penalise(struct mptcp_sock *msk, const struct sock *asking);

/*
 * Returns how many of the next `bytes` the subflow gets before the scheduler is asked again. The
 * kernel's own scheduler is asked again after a whole fragment.
 */
static inline u32 mptcp_scheduled_bytes(const struct mptcp_sock *msk, const struct sock *ssk,
					u32 bytes)
{
	u32 burst = msk->snd_burst > 0 ? msk->snd_burst : mptcp_subflow_segment(ssk);

	return msk->sched && msk->sched->by_burst ? min(bytes, burst) : bytes;
}

/*
 * Returns the window that an acknowledgement offers from its DATA_ACK on (RFC 8684, 3.3.4).
 * Mainline takes the subflow's window. That can belong to an earlier DATA_ACK, and the peer drops
 * what comes behind its own.
 */
static inline u32 mptcp_acked_window(const struct mptcp_sock *msk, const struct sock *ssk,
				     const struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(ssk);

	if (!msk->sched || !msk->sched->by_burst)
		return tp->snd_wnd;
	return ntohs(tcp_hdr(skb)->window) << tp->rx_opt.snd_wscale;
}

/* Returns the sequence number of the first byte that the subflow has not sent. */
static inline u64 redundant_next(const struct mptcp_sock *msk,
				 const struct mptcp_subflow_context *subflow)
{
	u64 acknowledged = msk->snd_una;

	/* Sequence numbers begin at random, so zero stands for none. */
	if (!subflow->redundant_next || !after64(subflow->redundant_next, acknowledged))
		return acknowledged;
	return subflow->redundant_next;
}

/* Tells whether there are bytes that the subflow has not sent. */
static inline bool redundant_lags(struct mptcp_sock *msk, const struct sock *ssk)
{
	return msk->sched && msk->sched->redundant &&
	       after64(msk->snd_nxt, redundant_next(msk, mptcp_subflow_ctx(ssk)));
}

/*
 * Forgets the round trip time of a subflow that was a backup and is used again (eMPTCP 3.6). It counts
 * as zero until the next sample, which TCP takes as its first. So lowest-rtt sends over the subflow
 * at once. The kernel's own scheduler does not go by round trip times.
 */
static inline void mptcp_subflow_resumed(const struct mptcp_sock *msk, struct sock *ssk)
{
	if (msk->sched && msk->sched->by_burst)
		WRITE_ONCE(tcp_sk(ssk)->srtt_us, 0);
}

#endif
