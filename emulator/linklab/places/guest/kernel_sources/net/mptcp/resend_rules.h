/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Says when a fast subflow sends again what a slow one holds, and what the slow one loses: the
 * arithmetic alone. kernel_sources_test.py compiles it for the host.
 *
 * Both are from Raiciu et al. (NSDI 2012, 4.2), who penalise once in the slow subflow's round trip.
 * Three points are of the kernel v0.89: it penalises once in the fast subflow's round trip, it
 * spares the threshold of a subflow in slow start, and it sends again only for a much slower one.
 *
 * The includer provides u32 and u64.
 */
#ifndef LINKLAB_RESEND_RULES_H
#define LINKLAB_RESEND_RULES_H

/* So many times the round trip makes a subflow much slower. */
#define RESEND_MUCH_SLOWER 4

/* A window of so many segments delivers too slowly, whatever the round trip. */
#define RESEND_SMALL_WINDOW 4

#define RESEND_LEAST_WINDOW 1
#define RESEND_LEAST_THRESHOLD 2

struct resend_path {
	u32 rtt;	/* in one unit for all paths */
	u32 window;	/* segments */
	u32 threshold;	/* segments, where slow start ends */
};

/* Tells whether `fast` sends again what `slow` holds. */
static inline int resend_is_worth_it(const struct resend_path *fast, const struct resend_path *slow)
{
	return slow->window <= RESEND_SMALL_WINDOW ||
	       slow->rtt > (u64)fast->rtt * RESEND_MUCH_SLOWER;
}

/* Tells whether `fast` penalises `slow`, `elapsed` after it last did so: once in its round trip. */
static inline int resend_penalises(const struct resend_path *fast, const struct resend_path *slow,
				   u64 elapsed)
{
	return fast->rtt < slow->rtt && elapsed >= fast->rtt;
}

static inline u32 resend_half(u32 segments, u32 least)
{
	return segments / 2 > least ? segments / 2 : least;
}

/* Halves the window, and the threshold unless the subflow is in slow start. */
static inline void resend_penalise(struct resend_path *slow)
{
	if (slow->window >= slow->threshold)
		slow->threshold = resend_half(slow->threshold, RESEND_LEAST_THRESHOLD);
	slow->window = resend_half(slow->window, RESEND_LEAST_WINDOW);
}

#endif
