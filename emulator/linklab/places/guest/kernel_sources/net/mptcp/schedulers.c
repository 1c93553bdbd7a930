// SPDX-License-Identifier: GPL-2.0
/*
 * Schedulers of Multipath TCP beside the kernel's own (net.mptcp.scheduler):
 *
 *  lowest-rtt	of the subflows whose congestion window has room, the one with the lowest round
 *		trip time. It was the default of the kernels up to 2020 (Raiciu et al., NSDI 2012;
 *		Paasch et al., CSWS 2014). As there, it sends again what blocks the connection, and
 *		penalises the subflow that holds it (resend.c).
 *  round-robin	one segment on each subflow in turn, as far as their windows have room (Paasch et
 *		al.)
 *  redundant	all bytes on each subflow, as far as their windows have room (Froemmgen et al.,
 *		ICC 2016)
 *  blest	lowest-rtt, but it waits for the fastest subflow if a slower one would keep the
 *		send window full for too long (Ferlin et al., IFIP Networking 2016, with lambda 1)
 *
 * Backups get bytes only if no other subflow works, as with the kernel's own scheduler.
 */

#define pr_fmt(fmt) "MPTCP: " fmt

#include <net/tcp.h>
#include "protocol.h"
#include "schedulers.h"

/*
 * Returns the bytes in a full segment. With other bursts there would be small segments between the
 * full ones.
 */
u32 mptcp_subflow_segment(const struct sock *ssk)
{
	u32 known = READ_ONCE(mptcp_subflow_ctx(ssk)->segment);

	return known ? known : READ_ONCE(tcp_sk(ssk)->mss_cache);
}

/* Returns the full segments that the subflow can send at once, beside what waits, in bytes. */
u32 mptcp_subflow_room(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);
	u32 waiting = READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_nxt);
	u32 sent = tcp_packets_in_flight(tp);
	u32 window = tcp_snd_cwnd(tp);
	u64 room = window > sent ? (u64)(window - sent) * mptcp_subflow_segment(ssk) : 0;

	/* After a timeout the subflow first repeats what it has. */
	if (inet_csk(ssk)->icsk_ca_state == TCP_CA_Loss || room <= waiting)
		return 0;
	room = min_t(u64, room - waiting, INT_MAX);
	return room - room % mptcp_subflow_segment(ssk);
}

static bool has_room(const struct sock *ssk)
{
	return mptcp_subflow_room(ssk) && sk_stream_memory_free(ssk);
}

static u32 round_trip(const struct sock *ssk)
{
	return READ_ONCE(tcp_sk(ssk)->srtt_us);
}

static bool is_backup(const struct mptcp_subflow_context *subflow)
{
	return subflow->backup || subflow->request_bkup;
}

/* Tells whether only backups work. */
static bool only_backups(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (!is_backup(subflow) && mptcp_subflow_active(subflow))
			return false;
	return true;
}

/* Walks the subflows that may get bytes. */
#define for_each_usable(msk, subflow, backups)				\
	mptcp_for_each_subflow(msk, subflow)				\
		if (is_backup(subflow) == (backups) && mptcp_subflow_active(subflow))

/* Lets a subflow send up to `bytes`. Zero stands for a probe of the closed window. */
static int let_send(struct mptcp_sock *msk, struct sock *ssk, u32 bytes)
{
	mptcp_set_timeout((struct sock *)msk);
	if (!ssk)
		return -EINVAL;
	msk->snd_burst = min_t(u64, bytes, READ_ONCE(msk->wnd_end) - msk->snd_nxt);
	mptcp_subflow_set_scheduled(mptcp_subflow_ctx(ssk), true);
	return 0;
}

/* Finds the subflow with the lowest round trip time, of all or of those with room. */
static struct sock *fastest(struct mptcp_sock *msk, bool with_room)
{
	struct mptcp_subflow_context *subflow;
	bool backups = only_backups(msk);
	struct sock *best = NULL;

	for_each_usable(msk, subflow, backups) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if ((!with_room || has_room(ssk)) && (!best || round_trip(ssk) < round_trip(best)))
			best = ssk;
	}
	return best;
}

static int lowest_rtt_get_send(struct mptcp_sock *msk)
{
	struct sock *ssk = fastest(msk, true);
	u32 bytes = ssk ? mptcp_subflow_room(ssk) : 0;

	if (ssk && mptcp_is_blocked(msk)) {
		mptcp_penalise(msk, ssk);
		bytes = mptcp_resend_bytes(msk, ssk);
		if (!bytes)
			ssk = NULL;
	}
	return let_send(msk, ssk, bytes);
}

/* Tells whether the fastest subflow could fill the window while the slow one sends a segment. */
static bool blest_waits(const struct mptcp_sock *msk, const struct sock *fast,
			const struct sock *slow)
{
	const struct tcp_sock *tp = tcp_sk(slow);
	u64 window = READ_ONCE(msk->wnd_end) - msk->snd_una;
	u64 slow_holds = (u32)(READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_una)) +
			 mptcp_subflow_segment(slow);
	/* in 1/1024 */
	u64 rounds = div_u64((u64)round_trip(slow) << 10, max(round_trip(fast), 1U));
	u64 grown = ((u64)tcp_snd_cwnd(tcp_sk(fast)) << 10) + (rounds - 1024) / 2;
	u64 fast_sends = (mptcp_subflow_segment(fast) * grown >> 10) * rounds >> 10;

	return fast_sends + slow_holds > window;
}

static int blest_get_send(struct mptcp_sock *msk)
{
	struct sock *ssk = fastest(msk, true), *fast = fastest(msk, false);

	if (ssk && ssk != fast && blest_waits(msk, fast, ssk))
		ssk = NULL;
	return let_send(msk, ssk, ssk ? mptcp_subflow_room(ssk) : 0);
}

static int round_robin_get_send(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	struct sock *first = NULL, *next = NULL;
	bool backups = only_backups(msk);
	bool after = false;

	for_each_usable(msk, subflow, backups) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (has_room(ssk)) {
			if (!first)
				first = ssk;
			if (after && !next)
				next = ssk;
		}
		after = after || subflow->subflow_id == msk->last_scheduled;
	}
	next = next ? : first;
	if (next)
		msk->last_scheduled = mptcp_subflow_ctx(next)->subflow_id;
	return let_send(msk, next, next ? mptcp_subflow_segment(next) : 0);
}

static int redundant_get_send(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	bool backups = only_backups(msk);
	int result = -EINVAL;

	mptcp_set_timeout((struct sock *)msk);
	for_each_usable(msk, subflow, backups) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (has_room(ssk) && (msk->first_pending || redundant_lags(msk, ssk))) {
			mptcp_subflow_set_scheduled(subflow, true);
			result = 0;
		}
	}
	return result;
}

/* Chooses as the kernel's own scheduler who repeats what another subflow did not bring. */
static int get_retrans(struct mptcp_sock *msk)
{
	struct sock *ssk = mptcp_subflow_get_retrans(msk);

	if (!ssk)
		return -EINVAL;
	mptcp_subflow_set_scheduled(mptcp_subflow_ctx(ssk), true);
	return 0;
}

static struct mptcp_sched_ops schedulers[] = {
	{ .name = "lowest-rtt", .get_send = lowest_rtt_get_send, .resends = true },
	{ .name = "round-robin", .get_send = round_robin_get_send },
	{ .name = "redundant", .get_send = redundant_get_send, .redundant = true },
	{ .name = "blest", .get_send = blest_get_send },
};

static int __init schedulers_register(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(schedulers); i++) {
		schedulers[i].get_retrans = get_retrans;
		schedulers[i].by_burst = true;
		schedulers[i].owner = THIS_MODULE;
		if (mptcp_register_scheduler(&schedulers[i]))
			pr_err("%s is not available\n", schedulers[i].name);
	}
	return 0;
}
late_initcall(schedulers_register);
