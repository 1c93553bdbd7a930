/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How coupled congestion controls change a window: the arithmetic alone. kernel_sources_test.py
 * compiles it for the host and compares it with the published formulas.
 *
 * The includer provides u32, u64, s64 and mul_u64_u64_div_u64(a, b, c) = a * b / c.
 */
#ifndef LINKLAB_COUPLED_RULES_H
#define LINKLAB_COUPLED_RULES_H

/* A segment in the unit of increases. */
#define COUPLED_SEGMENT (1 << 16)

#define COUPLED_MOST (1ULL << 62)

struct coupled_path {
	u64 window;	/* bytes, not 0 */
	u64 run;	/* bytes between two losses, the longer of the last two runs (OLIA) */
	u32 rtt;	/* us, not 0 */
	u32 mss;	/* bytes, not 0 */
};

/* Returns a * b / c, at most COUPLED_MOST. A result of more than 64 bits would trap. */
static inline u64 coupled_scaled(u64 a, u64 b, u64 c)
{
	if ((unsigned __int128)a * b >> 62 >= c)
		return COUPLED_MOST;
	return mul_u64_u64_div_u64(a, b, c);
}

/*
 * (sum of window_i / rtt_i)^2 / (window_j / rtt_j^2), in 1/65536 byte. If so many bytes are
 * acknowledged, a window grows by a segment.
 */
static inline u64 coupled_bytes_per_segment(const struct coupled_path *paths, int count, int j)
{
	u64 part, sum = 0;
	int i;

	for (i = 0; i < count; i++) {
		part = coupled_scaled(paths[i].window << 16, paths[j].rtt, paths[i].rtt);
		sum = sum + part < COUPLED_MOST ? sum + part : COUPLED_MOST;
	}
	return coupled_scaled(sum, sum, paths[j].window << 16);
}

/* Returns in 1/65536 segment by how much `bytes` let a window grow. */
static inline u64 coupled_segments(u64 bytes, u64 bytes_per_segment)
{
	return coupled_scaled(bytes << 16, COUPLED_SEGMENT, bytes_per_segment);
}

/* Compares window / rtt^2. */
static inline int coupled_is_faster(const struct coupled_path *a, const struct coupled_path *b)
{
	unsigned __int128 of_a = (unsigned __int128)a->window * b->rtt * b->rtt;
	unsigned __int128 of_b = (unsigned __int128)b->window * a->rtt * a->rtt;

	return of_a > of_b;
}

/*
 * LIA (RFC 6356, 3). Returns the increase of path `own`, in 1/65536 segment, for `bytes`
 * acknowledged: min(alpha * bytes * mss / total, bytes * mss / window) bytes.
 */
static inline s64 lia_increase(const struct coupled_path *paths, int count, int own, u64 bytes)
{
	u64 per_segment, alone = paths[own].window << 16;
	int i, best = 0;

	for (i = 1; i < count; i++)
		if (coupled_is_faster(&paths[i], &paths[best]))
			best = i;
	per_segment = coupled_bytes_per_segment(paths, count, best);
	return coupled_segments(bytes, per_segment > alone ? per_segment : alone);
}

/* Compares run / rtt^2, OLIA's estimate of a path's quality. */
static inline int olia_is_better(const struct coupled_path *a, const struct coupled_path *b)
{
	unsigned __int128 of_a = (unsigned __int128)a->run * b->rtt * b->rtt;
	unsigned __int128 of_b = (unsigned __int128)b->run * a->rtt * a->rtt;

	return of_a > of_b;
}

/*
 * OLIA (Khalili et al., CoNEXT 2012, equation 8). Returns the change of path `own`, in 1/65536
 * segment, for `bytes` acknowledged: (window / rtt^2) / (sum of window_i / rtt_i)^2 + alpha /
 * window segments per segment. Alpha moves window from the largest paths to the best ones.
 */
static inline s64 olia_increase(const struct coupled_path *paths, int count, int own, u64 bytes)
{
	int i, best = 0, largest = 0, small_best = 0, all_largest = 0;
	int own_is_best, own_is_largest;
	s64 increase, shift;

	for (i = 1; i < count; i++) {
		if (olia_is_better(&paths[i], &paths[best]))
			best = i;
		if (paths[i].window > paths[largest].window)
			largest = i;
	}
	for (i = 0; i < count; i++) {
		int is_largest = paths[i].window == paths[largest].window;

		all_largest += is_largest;
		small_best += !is_largest && !olia_is_better(&paths[best], &paths[i]);
	}
	own_is_largest = paths[own].window == paths[largest].window;
	own_is_best = !olia_is_better(&paths[best], &paths[own]);

	increase = coupled_segments(bytes, coupled_bytes_per_segment(paths, count, own));
	if (!small_best)
		return increase;
	shift = coupled_segments(bytes, paths[own].window << 16);
	if (own_is_largest)
		return increase - shift / (count * all_largest);
	if (own_is_best)
		return increase + shift / (count * small_best);
	return increase;
}

/* Returns BALIA's alpha of path `own` in 1/1024: the highest rate of all paths to its own. */
static inline u64 balia_alpha(const struct coupled_path *paths, int count, int own)
{
	u64 highest = 0, most = 1 << 20;
	int i;

	for (i = 0; i < count; i++) {
		u64 ratio = coupled_scaled(paths[i].window << 10, paths[own].rtt,
					   paths[own].window * paths[i].rtt);

		if (ratio > highest)
			highest = ratio;
	}
	return highest < most ? highest : most;
}

/*
 * BALIA (Peng, Walid, Hwang, Low, ToN 2016). Returns the increase of path `own`, in 1/65536
 * segment, for `bytes` acknowledged: OLIA's first term times (1 + alpha) / 2 * (4 + alpha) / 5.
 */
static inline s64 balia_increase(const struct coupled_path *paths, int count, int own, u64 bytes)
{
	u64 alpha = balia_alpha(paths, count, own);
	/* COUPLED_SEGMENT * (1 + alpha) * (4 + alpha) / 10 */
	u64 factor = (1024 + alpha) * (4096 + alpha) / 160;

	return coupled_scaled(bytes << 16, factor, coupled_bytes_per_segment(paths, count, own));
}

/* Returns the part of its window that path `own` loses with BALIA, in 1/1024. */
static inline u32 balia_decrease(const struct coupled_path *paths, int count, int own)
{
	u64 alpha = balia_alpha(paths, count, own);

	return (alpha < 1536 ? alpha : 1536) / 2;
}

#endif
