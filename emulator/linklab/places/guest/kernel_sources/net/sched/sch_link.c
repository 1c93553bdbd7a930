// SPDX-License-Identifier: GPL-2.0
/*
 * linklab: the rate of one direction of a link, exact for each frame.
 *
 * The child holds the queue and decides the order. The frame at its head begins when the
 * link is free. It is on the air until the integral of the rate since its beginning has
 * reached its bits. Then it leaves the qdisc, also on an idle link. A change of the rate
 * counts for what remains of the frame. A rate of 0 holds it. A shut link loses what
 * waits, what is on the air and what arrives.
 *
 * Rates that are known ahead come as a table, which needs no timer of its own: the qdisc
 * looks the rates up when a frame begins and ends.
 *
 * A timer that fires late delays a frame, but not the next one: that begins at the time at
 * which the link was free.
 */

#include <linux/module.h>
#include <linux/kernel.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

enum {
	TCA_LINK_UNSPEC,
	TCA_LINK_RATE,		/* u64, bit/s from now on; ends the table */
	TCA_LINK_TABLE,		/* struct link_change[], by time; replaces the table */
	TCA_LINK_SHUT,		/* u8 */
	TCA_LINK_SOJOURN,	/* u32[2][SOJOURN_BUCKETS], only read */
	__TCA_LINK_MAX,
};

#define TCA_LINK_MAX (__TCA_LINK_MAX - 1)

struct link_change {
	u64	at_ns;		/* CLOCK_MONOTONIC */
	u64	rate_bps;
};

/* What only this qdisc counts (TCA_STATS_APP). */
struct link_stats {
	u64	lost_packets;	/* by a shut link, or by a device that went down */
};

/*
 * How many packets waited how long in the child, for the ECN codepoints Not-ECT and
 * ECT(0), and for ECT(1) and CE (RFC 9331). A wait in units of 1024 ns has 16 buckets per
 * power of two.
 */
#define SOJOURN_BUCKETS	384

/* Bits are counted in units of 1 bit/s times 1 ns, so that nothing is rounded. */
#define UNITS_PER_BYTE	(8 * (u64)NSEC_PER_SEC)

struct link_sched {
	struct Qdisc		*child;
	struct qdisc_watchdog	watchdog;
	struct sk_buff		*air;		/* the frame that the link sends */
	u64			left;		/* units of it that are not sent */
	u64			since_ns;	/* `left` and the rate are of this time */
	u64			spare;		/* units sent beyond the last frame until since_ns */
	u64			rate_bps;
	struct link_change	*table;
	u32			changes, next;	/* length of the table, the next one in it */
	bool			shut;
	struct link_stats	stats;
	u32			sojourn[2][SOJOURN_BUCKETS];
};

/* The arrival's time is kept in the packet. Its last bit tells both kinds of packets apart. */
static void stamp_arrival(struct sk_buff *skb)
{
	int field = skb_get_dsfield(skb);

	skb->tstamp = ktime_get_ns() & ~1ULL;
	if (field > 0)
		skb->tstamp |= field & INET_ECN_ECT_1;
}

static void count_sojourn(struct link_sched *q, bool scalable, u64 waited_ns)
{
	u64 waited = waited_ns >> 10;
	int power = fls64(waited | 15) - 4;
	u64 bucket = waited;

	if (power > 0)
		bucket = (waited >> (power - 1)) + 16 * (power - 1);
	q->sojourn[scalable][min_t(u64, bucket, SOJOURN_BUCKETS - 1)]++;
}

/* When a frame ends if the rate stays as it is. With a rate of 0 that is never. */
static u64 end_ns(u64 since_ns, u64 left, u64 rate_bps)
{
	if (!left)
		return since_ns;
	return rate_bps ? since_ns + DIV64_U64_ROUND_UP(left, rate_bps) : U64_MAX;
}

/* Moves on to `now_ns`, or to the end of the frame on the air. Returns whether it ended. */
static bool move_on(struct link_sched *q, u64 now_ns)
{
	for (;;) {
		bool has_change = q->next < q->changes && q->table[q->next].at_ns <= now_ns;
		u64 until_ns = has_change ? q->table[q->next].at_ns : now_ns;

		until_ns = max(until_ns, q->since_ns);
		if (q->air) {
			u64 ended_ns = end_ns(q->since_ns, q->left, q->rate_bps);

			if (ended_ns <= until_ns) {
				q->spare += q->rate_bps * (ended_ns - q->since_ns) - q->left;
				q->left = 0;
				q->since_ns = ended_ns;
				return true;
			}
			q->left -= q->rate_bps * (until_ns - q->since_ns);
		} else if (until_ns > q->since_ns) {
			q->spare = 0;
		}
		q->since_ns = until_ns;
		if (!has_change)
			return false;
		q->rate_bps = q->table[q->next++].rate_bps;
	}
}

/* When the frame on the air will end, by the rates that are known. */
static u64 planned_end_ns(const struct link_sched *q)
{
	u64 since_ns = q->since_ns, left = q->left, rate_bps = q->rate_bps;
	u32 next;

	for (next = q->next; next < q->changes; next++) {
		u64 at_ns = max(q->table[next].at_ns, since_ns);
		u64 ended_ns = end_ns(since_ns, left, rate_bps);

		if (ended_ns <= at_ns)
			return ended_ns;
		left -= rate_bps * (at_ns - since_ns);
		since_ns = at_ns;
		rate_bps = q->table[next].rate_bps;
	}
	return end_ns(since_ns, left, rate_bps);
}

static void set_timer(struct link_sched *q)
{
	u64 ended_ns = q->air ? planned_end_ns(q) : U64_MAX;

	if (ended_ns == U64_MAX)
		qdisc_watchdog_cancel(&q->watchdog);
	else
		qdisc_watchdog_schedule_ns(&q->watchdog, ended_ns);
}

/* Puts the next frame on the air, from the time at which both frame and link were there. */
static void begin(struct link_sched *q)
{
	struct sk_buff *skb = q->child->dequeue(q->child);
	u64 arrived_ns;

	if (!skb)
		return;
	arrived_ns = skb->tstamp & ~1ULL;
	move_on(q, arrived_ns);
	count_sojourn(q, skb->tstamp & 1, q->since_ns - arrived_ns);
	q->left = UNITS_PER_BYTE * qdisc_pkt_len(skb);
	q->left -= min(q->left, q->spare);
	q->spare = 0;
	q->air = skb;
}

static int link_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct link_sched *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	int result;

	if (q->shut) {
		q->stats.lost_packets++;
		__qdisc_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	/* A router does not know the hash that the sender's TCP drew for a flow. */
	skb_clear_hash(skb);
	stamp_arrival(skb);
	result = qdisc_enqueue(skb, q->child, to_free);
	if (result != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(result))
			qdisc_qstats_drop(sch);
		return result;
	}
	qstats_backlog_add(sch, bytes);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *link_dequeue(struct Qdisc *sch)
{
	struct link_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (!q->air)
		begin(q);
	if (!q->air)
		return NULL;
	if (!move_on(q, ktime_get_ns())) {
		set_timer(q);
		return NULL;
	}
	skb = q->air;
	q->air = NULL;
	skb_clear_tstamp(skb);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
	qdisc_bstats_update(sch, skb);
	begin(q);
	return skb;
}

/* Loses all that waits, and what is on the air. */
static void link_reset(struct Qdisc *sch)
{
	struct link_sched *q = qdisc_priv(sch);

	q->stats.lost_packets += sch->q.qlen;
	rtnl_kfree_skbs(q->air, q->air);
	q->air = NULL;
	q->spare = 0;
	qdisc_reset(q->child);
	WRITE_ONCE(sch->q.qlen, 0);
	WRITE_ONCE(sch->qstats.backlog, 0);
	qdisc_watchdog_cancel(&q->watchdog);
}

static const struct nla_policy link_policy[TCA_LINK_MAX + 1] = {
	[TCA_LINK_RATE]		= { .type = NLA_U64 },
	[TCA_LINK_TABLE]	= { .type = NLA_BINARY },
	[TCA_LINK_SHUT]		= { .type = NLA_U8 },
};

static int link_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct link_sched *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_LINK_MAX + 1];
	struct link_change *table = NULL, *old = NULL;
	u32 changes = 0;
	int err;

	err = nla_parse_nested(tb, TCA_LINK_MAX, opt, link_policy, extack);
	if (err < 0)
		return err;
	if (tb[TCA_LINK_TABLE]) {
		changes = nla_len(tb[TCA_LINK_TABLE]) / sizeof(*table);
		table = kvmemdup(nla_data(tb[TCA_LINK_TABLE]), changes * sizeof(*table),
				 GFP_KERNEL);
		if (!table)
			return -ENOMEM;
	}
	sch_tree_lock(sch);
	move_on(q, ktime_get_ns());
	if (tb[TCA_LINK_RATE] || table) {
		old = q->table;
		q->table = table;
		q->changes = changes;
		q->next = 0;
	}
	if (tb[TCA_LINK_RATE])
		q->rate_bps = nla_get_u64(tb[TCA_LINK_RATE]);
	if (tb[TCA_LINK_SHUT]) {
		q->shut = nla_get_u8(tb[TCA_LINK_SHUT]);
		if (q->shut)
			link_reset(sch);
	}
	set_timer(q);
	sch_tree_unlock(sch);
	kvfree(old);
	return 0;
}

static int link_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct link_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = &noop_qdisc;
	q->since_ns = ktime_get_ns();
	return opt ? link_change(sch, opt, extack) : -EINVAL;
}

static void link_destroy(struct Qdisc *sch)
{
	struct link_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	rtnl_kfree_skbs(q->air, q->air);
	kvfree(q->table);
	qdisc_put(q->child);
}

static int link_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct link_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -1;
	if (nla_put(skb, TCA_LINK_RATE, sizeof(q->rate_bps), &q->rate_bps)) {
		nla_nest_cancel(skb, nest);
		return -1;
	}
	return nla_nest_end(skb, nest);
}

static int link_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct link_sched *q = qdisc_priv(sch);

	return gnet_stats_copy_app(d, &q->stats, sizeof(q->stats));
}

static int link_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			   struct tcmsg *tcm)
{
	struct link_sched *q = qdisc_priv(sch);
	struct nlattr *nest;

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->child->handle;
	nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!nest)
		return -1;
	if (nla_put(skb, TCA_LINK_SOJOURN, sizeof(q->sojourn), q->sojourn)) {
		nla_nest_cancel(skb, nest);
		return -1;
	}
	return nla_nest_end(skb, nest);
}

static int link_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		      struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct link_sched *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	return 0;
}

static struct Qdisc *link_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct link_sched *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long link_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void link_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static const struct Qdisc_class_ops link_class_ops = {
	.graft	= link_graft,
	.leaf	= link_leaf,
	.find	= link_find,
	.walk	= link_walk,
	.dump	= link_dump_class,
};

static struct Qdisc_ops link_qdisc_ops __read_mostly = {
	.cl_ops		= &link_class_ops,
	.id		= "link",
	.priv_size	= sizeof(struct link_sched),
	.enqueue	= link_enqueue,
	.dequeue	= link_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= link_init,
	.reset		= link_reset,
	.destroy	= link_destroy,
	.change		= link_change,
	.dump		= link_dump,
	.dump_stats	= link_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init link_module_init(void)
{
	return register_qdisc(&link_qdisc_ops);
}

static void __exit link_module_exit(void)
{
	unregister_qdisc(&link_qdisc_ops);
}

module_init(link_module_init)
module_exit(link_module_exit)
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("The rate of one direction of a link");
