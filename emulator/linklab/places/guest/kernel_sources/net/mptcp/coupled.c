// SPDX-License-Identifier: GPL-2.0
/*
 * Coupled congestion controls of Multipath TCP: lia, olia and balia (coupled_rules.h). For a
 * connection without further subflows they are Reno. Slow start is Reno's, too.
 *
 * The kernel calls a congestion control with its own subflow locked, not the connection, so it must
 * not walk the connection's list. Coupled subflows are in a list of this file instead. A socket is
 * in it until its congestion control is released, which is before it is freed. So whoever holds
 * the list's lock may read the sockets in it. The windows and round trip times of other subflows
 * are read without their locks.
 */

#define pr_fmt(fmt) "MPTCP: " fmt

#include <linux/math64.h>
#include <net/tcp.h>
#include "protocol.h"
#include "coupled_rules.h"

#define COUPLED_MOST_PATHS 8

struct coupled {
	struct list_head node;
	struct sock *sk;
	u32 token;	/* of the connection, 0 for plain TCP */
	s32 fraction;	/* of the window's next segment, in 1/65536 */
	u64 run;	/* bytes acknowledged since the last loss */
	u64 run_before;	/* bytes acknowledged between the two losses before */
};

typedef s64 (*coupled_rule)(const struct coupled_path *paths, int count, int own, u64 bytes);

static LIST_HEAD(coupled_subflows);
static DEFINE_SPINLOCK(coupled_lock);

static struct coupled *coupled_of(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

static void coupled_init(struct sock *sk)
{
	struct coupled *own = coupled_of(sk);

	memset(own, 0, sizeof(*own));
	own->sk = sk;
	if (sk_is_mptcp(sk) && mptcp_subflow_ctx(sk)->conn)
		own->token = READ_ONCE(mptcp_sk(mptcp_subflow_ctx(sk)->conn)->token);
	spin_lock_bh(&coupled_lock);
	list_add_tail(&own->node, &coupled_subflows);
	spin_unlock_bh(&coupled_lock);
}

static void coupled_release(struct sock *sk)
{
	spin_lock_bh(&coupled_lock);
	list_del(&coupled_of(sk)->node);
	spin_unlock_bh(&coupled_lock);
}

/* Returns false for a subflow that is not open yet, closes, or knows no round trip time. */
static bool coupled_describe(const struct coupled *one, struct coupled_path *path)
{
	const struct tcp_sock *tp = tcp_sk(one->sk);
	bool recovers = inet_csk(one->sk)->icsk_ca_state >= TCP_CA_CWR;
	u32 segments = recovers ? READ_ONCE(tp->snd_ssthresh) : tcp_snd_cwnd(tp);

	path->mss = READ_ONCE(tp->mss_cache);
	path->rtt = READ_ONCE(tp->srtt_us) >> 3;
	path->window = (u64)segments * path->mss;
	path->run = max(READ_ONCE(one->run), READ_ONCE(one->run_before));
	return (1 << READ_ONCE(one->sk->sk_state)) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT) &&
	       path->rtt && path->window;
}

/* Describes the paths of sk's connection, its own first. Returns how many. */
static int coupled_paths(struct sock *sk, struct coupled_path *paths)
{
	const struct coupled *one, *own = coupled_of(sk);
	int count = 1;

	coupled_describe(own, &paths[0]);
	paths[0].rtt = max(paths[0].rtt, 1U);
	paths[0].window = max_t(u64, paths[0].window, 1);
	if (!own->token)
		return count;
	spin_lock_bh(&coupled_lock);
	list_for_each_entry(one, &coupled_subflows, node)
		if (one != own && one->token == own->token && count < COUPLED_MOST_PATHS)
			count += coupled_describe(one, &paths[count]);
	spin_unlock_bh(&coupled_lock);
	return count;
}

static void coupled_grow(struct sock *sk, u32 acked, coupled_rule rule)
{
	struct coupled_path paths[COUPLED_MOST_PATHS];
	struct coupled *own = coupled_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	int count, segments;
	s64 fraction;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	count = coupled_paths(sk, paths);
	fraction = own->fraction + rule(paths, count, 0, (u64)acked * paths[0].mss);
	segments = clamp_t(s64, fraction / COUPLED_SEGMENT, -(s64)tcp_snd_cwnd(tp), acked);
	own->fraction = (fraction - (s64)segments * COUPLED_SEGMENT) % COUPLED_SEGMENT;
	if (segments)
		tcp_snd_cwnd_set(tp, clamp_t(s64, (s64)tcp_snd_cwnd(tp) + segments, 1,
					     tp->snd_cwnd_clamp));
}

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_grow(sk, acked, lia_increase);
}

static void olia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_grow(sk, acked, olia_increase);
}

static void olia_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct coupled *own = coupled_of(sk);

	WRITE_ONCE(own->run, own->run + (u64)sample->pkts_acked * tcp_sk(sk)->mss_cache);
}

static u32 olia_ssthresh(struct sock *sk)
{
	struct coupled *own = coupled_of(sk);

	WRITE_ONCE(own->run_before, own->run);
	WRITE_ONCE(own->run, 0);
	return tcp_reno_ssthresh(sk);
}

static void balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_grow(sk, acked, balia_increase);
}

static u32 balia_ssthresh(struct sock *sk)
{
	struct coupled_path paths[COUPLED_MOST_PATHS];
	u32 part = balia_decrease(paths, coupled_paths(sk, paths), 0);
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	return max(window - (u32)((u64)window * part / 1024), 2U);
}

static struct tcp_congestion_ops coupled_controls[] __read_mostly = {
	{
		.init		= coupled_init,
		.release	= coupled_release,
		.ssthresh	= tcp_reno_ssthresh,
		.cong_avoid	= lia_cong_avoid,
		.undo_cwnd	= tcp_reno_undo_cwnd,
		.flags		= TCP_CONG_NON_RESTRICTED,
		.owner		= THIS_MODULE,
		.name		= "lia",
	},
	{
		.init		= coupled_init,
		.release	= coupled_release,
		.ssthresh	= olia_ssthresh,
		.cong_avoid	= olia_cong_avoid,
		.pkts_acked	= olia_pkts_acked,
		.undo_cwnd	= tcp_reno_undo_cwnd,
		.flags		= TCP_CONG_NON_RESTRICTED,
		.owner		= THIS_MODULE,
		.name		= "olia",
	},
	{
		.init		= coupled_init,
		.release	= coupled_release,
		.ssthresh	= balia_ssthresh,
		.cong_avoid	= balia_cong_avoid,
		.undo_cwnd	= tcp_reno_undo_cwnd,
		.flags		= TCP_CONG_NON_RESTRICTED,
		.owner		= THIS_MODULE,
		.name		= "balia",
	},
};

static int __init coupled_register(void)
{
	int i;

	BUILD_BUG_ON(sizeof(struct coupled) > ICSK_CA_PRIV_SIZE);
	for (i = 0; i < ARRAY_SIZE(coupled_controls); i++)
		if (tcp_register_congestion_control(&coupled_controls[i]))
			pr_err("%s is not available\n", coupled_controls[i].name);
	return 0;
}
late_initcall(coupled_register);
