/* One training step, or one evaluation, of a network of the NAS-Bench-201 skeleton on one processor core.

A network is a tape: a list of operations on numbered tensors, written by pipeline/native/tape.py. A tensor is stored
as (channel, row, column, image), so that a vector holds one pixel of 16 images, or of 8 on a processor without AVX-512.
Every loop is then a loop over whole vectors, whatever the side of the image and the number of channels. 16 floats lie
unused between channels: without them, the same pixel of all channels would fall into the same few lines of the cache.

Convolutions of stride 1 with a 3 x 3 kernel multiply tiles in Winograd's domain (Lavin and Gray 2016,
arXiv:1509.09308): 36 products for 16 pixels in place of 144. All others visit each output pixel and its taps. BATCH,
the images of a batch, is given to the compiler and is a multiple of 64.

Over 400 lines: it is compiled as one file, so that every loop is inlined with its constants. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef LANES
#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#endif
#define COLUMNS (LANES / 4) /* vectors that a kernel multiplies at once: the sums stay in half of the registers */
#define NV (BATCH / LANES)  /* vectors of one pixel of a batch */
#define BLOCK 4             /* channels that a kernel multiplies at once */
#define SPAN 16             /* floats between channels, and sums of a block of 4 x 4 */
#define GAP (SPAN / LANES)
#define MOST_CHANNELS 1024
#define MOST_TILES 2 /* whose products are summed at once */
#define EPSILON 1e-5f
#define PLANE(side) ((int64_t)(side) * (side) * NV + GAP) /* vectors from one channel to the next */
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
typedef float quad __attribute__((vector_size(16)));

_Static_assert(BATCH % 64 == 0, "BATCH must be a multiple of 64");

enum { CONVOLVE_NORM, CONVOLVE, ACTIVATE, COPY, POOL, HALVE, NORM, CLASSIFY };
enum { RELU, HARDSWISH, MISH };
enum { STATISTICS, ASSIGN, ADD };

typedef struct { /* the columns of a tape, as tape.py writes them */
    int32_t kind, in, out, n_in, n_out, side, side_out, kernel, stride;
    int32_t weight, norm, running, raw;
    int32_t is_first_value, is_first_grad, needs_grad;
} op_t;

typedef struct {
    int32_t n_ops, activation, n_classes;
    const op_t *ops;
    const int64_t *value_at, *grad_at; /* offset of each tensor in them */
    float *values, *grads;             /* of all tensors */
    float *params, *param_grads, *momenta, *running;
    float *work;                       /* scratch */
    float *kept;                       /* saved for the backward pass: mean and 1 / deviation of each channel, */
    float *features, *logits;          /* means over pixels, and the gradient of the logits */
} net_t;

INLINE vec splat(float x) { return x - (vec){}; }
INLINE vec choose(ivec condition, vec yes, vec no) { return (vec)(((ivec)yes & condition) | ((ivec)no & ~condition)); }

/* ---- sums over lanes ---- */

#define QUAD(at) at, at + 1, at + 2, at + 3
#define TWICE(a, b, c, d) a, b, c, d, a + 4, b + 4, c + 4, d + 4
#if LANES == 16
#define EVERY(a, b, c, d) TWICE(a, b, c, d), TWICE(a + 8, b + 8, c + 8, d + 8) /* of each quad, the same four lanes */
#else
#define EVERY TWICE
#endif
#define PICK(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})

/* Add the sums over the lanes of LANES vectors to `sums`, first within each quad: to cross quads is slower. */
INLINE void sum_lanes(vec *x, float *sums) {
    enum { L = LANES };
#pragma GCC unroll 8
    for (int i = 0; i < L / 2; i++) {
        vec a = x[2 * i], b = x[2 * i + 1];
        x[i] = PICK(a, b, EVERY(0, L, 1, L + 1)) + PICK(a, b, EVERY(2, L + 2, 3, L + 3));
    }
#pragma GCC unroll 4
    for (int i = 0; i < L / 4; i++) {
        vec a = x[2 * i], b = x[2 * i + 1];
        x[i] = PICK(a, b, EVERY(0, 1, L, L + 1)) + PICK(a, b, EVERY(2, 3, L + 2, L + 3));
    }
#if LANES == 16
    for (int i = 0; i < 2; i++) {
        vec a = x[2 * i], b = x[2 * i + 1];
        x[i] = PICK(a, b, QUAD(0), QUAD(16), QUAD(4), QUAD(20)) + PICK(a, b, QUAD(8), QUAD(24), QUAD(12), QUAD(28));
    }
    x[0] = PICK(x[0], x[1], QUAD(0), QUAD(4), QUAD(16), QUAD(20)) +
           PICK(x[0], x[1], QUAD(8), QUAD(12), QUAD(24), QUAD(28));
#else
    x[0] = PICK(x[0], x[1], QUAD(0), QUAD(8)) + PICK(x[0], x[1], QUAD(4), QUAD(12));
#endif
    *(vec *)sums += x[0];
}

static double total(vec x) {
    double sum = 0;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
}

/* ---- convolutions ---- */

typedef struct { /* of a convolution, or of its transpose for the backward pass */
    int side_from, side_to, kernel, stride, is_backward;
} geometry_t;

/* Return the row (or column) that `tap` of pixel `at` reads, or -1 if there is none. */
INLINE int tap_source(const geometry_t *g, int at, int tap) {
    int middle = g->kernel / 2;
    if (!g->is_backward) {
        int from = at * g->stride + tap - middle;
        return from < g->side_from ? from : -1; /* above the image it is negative already */
    }
    int from = at - tap + middle;
    if (from < 0 || from % g->stride) return -1;
    from /= g->stride;
    return from < g->side_from ? from : -1;
}

/* Whether any pixel reads something by this tap: of an image of one pixel, the outer ones read nothing. */
static int is_used(const geometry_t *g, int tap) {
    int is_row = 0, is_column = 0;
    for (int at = 0; at < g->side_to; at++) {
        is_row |= tap_source(g, at, tap / g->kernel) >= 0;
        is_column |= tap_source(g, at, tap % g->kernel) >= 0;
    }
    return is_row && is_column;
}

/* Return x in a register. Else GCC reads it from memory for each product, and reading takes longer than multiplying. */
INLINE vec loaded(vec x) {
#if LANES == 16 ? defined(__AVX512F__) : defined(__AVX__)
    __asm__("" : "+v"(x));
#endif
    return x;
}

/* acc[r][v] += sum over channels of w[channel][r] * x[channel][v]. */
INLINE void multiply(vec acc[BLOCK][COLUMNS], int n, const float *w, const vec *x, int64_t stride) {
    for (int c = 0; c < n; c++, w += BLOCK, x += stride) {
        vec once[COLUMNS];
#pragma GCC unroll 4
        for (int v = 0; v < COLUMNS; v++) once[v] = loaded(x[v]);
#pragma GCC unroll 4
        for (int r = 0; r < BLOCK; r++)
#pragma GCC unroll 4
            for (int v = 0; v < COLUMNS; v++) acc[r][v] += w[r] * once[v];
    }
}

/* acc[c][r] += sum over vectors of a[r][v] * b[c][v], for COLUMNS of b. */
INLINE void correlate(vec acc[COLUMNS][BLOCK], int n, const vec *a, int64_t stride_a, const vec *b, int64_t stride_b) {
    for (int v = 0; v < n; v++) {
        vec once[COLUMNS];
#pragma GCC unroll 4
        for (int c = 0; c < COLUMNS; c++) once[c] = loaded(b[c * stride_b + v]);
#pragma GCC unroll 4
        for (int r = 0; r < BLOCK; r++) {
            vec other = loaded(a[r * stride_a + v]);
#pragma GCC unroll 4
            for (int c = 0; c < COLUMNS; c++) acc[c][r] += other * once[c];
        }
    }
}

/* Add n values to the sums of their channel: deviations from sums[2], and their squares. */
INLINE void observe(const vec *values, int n, vec *sums) {
    vec first = sums[0], second = sums[1], mean = sums[2]; /* copies: for GCC, values might overlap with sums */
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        vec deviation = values[i] - mean;
        first += deviation;
        second += deviation * deviation;
    }
    sums[0] = first;
    sums[1] = second;
}

/* Assign or add n values, `step` apart. */
INLINE void store(vec *out, int64_t step, const vec *values, int n, int mode, vec *sums) {
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) out[i * step] = mode == ADD ? out[i * step] + values[i] : values[i];
    if (mode == STATISTICS) observe(values, n, sums);
}

/* Pack weights as `multiply` reads them, (tap, block of output channels, input channel, 4), zeros beyond n_in. */
static void pack(const float *weight, float *packed, int n_in, int n_read, int n_out, const geometry_t *g) {
    int n_taps = g->kernel * g->kernel;
    int step_out = g->is_backward ? n_taps : n_in * n_taps, step_in = g->is_backward ? n_out * n_taps : n_taps;
    for (int tap = 0; tap < n_taps; tap++) {
        if (!is_used(g, tap)) continue;
        float *to = packed + tap * n_read * n_out;
        for (int out = 0; out < n_out; out += BLOCK)
            for (int in = 0; in < n_read; in++)
                for (int r = 0; r < BLOCK; r++)
                    *to++ = in < n_in ? weight[(out + r) * step_out + in * step_in + tap] : 0;
    }
}

/* Convolve tap by tap. Where mode is STATISTICS, `sums` (channel, 3) collects deviations and their squares. */
INLINE void convolve_taps(
    const vec *x, const float *packed, vec *out, int n_read, int n_out, geometry_t g, int mode, vec *sums
) {
    int side = g.side_to;
    int64_t plane_in = PLANE(g.side_from), plane_out = PLANE(side);
    for (int y = 0; y < side; y++)
        for (int column = 0; column < side; column++) {
            int n_taps = 0;
            const float *weights[9];
            const vec *from[9];
            for (int ky = 0; ky < g.kernel; ky++) {
                int from_y = tap_source(&g, y, ky);
                for (int kx = 0; kx < g.kernel; kx++) {
                    int from_x = tap_source(&g, column, kx);
                    if (from_y < 0 || from_x < 0) continue;
                    weights[n_taps] = packed + (ky * g.kernel + kx) * n_out * n_read;
                    from[n_taps++] = x + (int64_t)(from_y * g.side_from + from_x) * NV;
                }
            }
            vec *to = out + (int64_t)(y * side + column) * NV;
            for (int v0 = 0; v0 < NV; v0 += COLUMNS)
                for (int channel = 0; channel < n_out; channel += BLOCK) {
                    vec acc[BLOCK][COLUMNS] = {};
                    for (int tap = 0; tap < n_taps; tap++)
                        multiply(acc, n_read, weights[tap] + channel * n_read, from[tap] + v0, plane_in);
                    for (int r = 0; r < BLOCK; r++)
                        store(to + (channel + r) * plane_out + v0, 1, acc[r], COLUMNS, mode, sums + 3 * (channel + r));
                }
        }
}

/* Gradient of the weights, tap by tap: sum over pixels and images of grad * input. Row by row, to stay in the cache. */
static void weight_gradient(
    const vec *x, const vec *grad, float *weight_grad, int n_in, int n_read, int n_out, geometry_t g, float *sums
) {
    int kernel = g.kernel, n_taps = kernel * kernel, side = g.side_to;
    int64_t plane_in = PLANE(g.side_from), plane_out = PLANE(side);
    memset(sums, 0, sizeof(float) * n_taps * n_read * n_out);
    for (int y = 0; y < side; y++)
        for (int tap = 0; tap < n_taps; tap++) {
            float *to = sums + tap * n_read * n_out; /* (block of n_out, block of n_in, 4 x 4) */
            int from_y = tap_source(&g, y, tap / kernel), first = 0, last = side - 1;
            if (from_y < 0) continue;
            while (first < side && tap_source(&g, first, tap % kernel) < 0) first++;
            while (last >= first && tap_source(&g, last, tap % kernel) < 0) last--;
            if (first > last) continue;
            int from_x = tap_source(&g, first, tap % kernel);
            const vec *rows = x + (int64_t)(from_y * g.side_from + from_x) * NV;
            const vec *grads = grad + (int64_t)(y * side + first) * NV;
            for (int out = 0; out < n_out; out += BLOCK)
                for (int in = 0; in < n_read; in += BLOCK, to += SPAN) {
                    for (int part = 0; part < BLOCK; part += COLUMNS) {
                        vec acc[COLUMNS][BLOCK] = {};
                        const vec *a = grads + out * plane_out, *b = rows + (in + part) * plane_in;
                        if (g.stride == 1)
                            correlate(acc, (last - first + 1) * NV, a, plane_out, b, plane_in);
                        else
                            for (int column = first; column <= last; column++, a += NV, b += g.stride * NV)
                                correlate(acc, NV, a, plane_out, b, plane_in);
                        sum_lanes((vec *)acc, to + part * BLOCK);
                    }
                }
        }
    memset(weight_grad, 0, sizeof(float) * n_taps * n_in * n_out);
    for (int tap = 0; tap < n_taps; tap++) {
        if (!is_used(&g, tap)) continue;
        const float *from = sums + tap * n_read * n_out;
        for (int out = 0; out < n_out; out += BLOCK)
            for (int in = 0; in < n_read; in += BLOCK, from += SPAN)
                for (int i = 0; i < SPAN; i++)
                    if (in + i / BLOCK < n_in)
                        weight_grad[((out + i % BLOCK) * n_in + in + i / BLOCK) * n_taps + tap] = from[i];
    }
}

/* ---- Winograd's F(4 x 4, 3 x 3) ----
 *
 * Tiles of 6 x 6 pixels, 4 apart, are multiplied point by point with 6 x 6 transforms of the kernels. Each transform is
 * applied to the columns and then to the rows. The matrices are those of Lavin and Gray, section 4.3. */

#define POINTS 36
#define TILE 4

INLINE void input_transform(const vec d[6], vec to[6]) { /* B^T d */
    vec a = d[4] - 4 * d[2], b = d[3] - 4 * d[1], c = d[4] - d[2], e = 2 * (d[3] - d[1]);
    to[0] = 4 * d[0] - 5 * d[2] + d[4];
    to[1] = a + b;
    to[2] = a - b;
    to[3] = c + e;
    to[4] = c - e;
    to[5] = 4 * d[1] - 5 * d[3] + d[5];
}

INLINE void output_transform(const vec m[6], vec to[4]) { /* A^T m */
    vec a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], e = m[3] - m[4];
    to[0] = m[0] + a + c;
    to[1] = b + 2 * e;
    to[2] = a + 4 * c;
    to[3] = b + 8 * e + m[5];
}

INLINE void output_transposed(const vec y[4], vec to[6]) { /* A y */
    vec a = y[0] + y[2], b = y[1] + y[3], c = y[0] + 4 * y[2], e = 2 * y[1] + 8 * y[3];
    to[0] = y[0];
    to[1] = a + b;
    to[2] = a - b;
    to[3] = c + e;
    to[4] = c - e;
    to[5] = y[3];
}

INLINE void kernel_transform(const quad g[3], quad to[6]) { /* G g */
    quad a = (g[0] + g[2]) * (-1.0f / 6), b = g[1] * (1.0f / 6), c = g[0] * (1.0f / 24) + g[2] * (1.0f / 6);
    to[0] = g[0] * 0.25f;
    to[1] = a - b;
    to[2] = a + b;
    to[3] = c + g[1] * (1.0f / 12);
    to[4] = c - g[1] * (1.0f / 12);
    to[5] = g[2];
}

INLINE void kernel_transposed(const vec u[6], vec to[3]) { /* G^T u */
    vec a = (u[1] + u[2]) * (-1.0f / 6), b = u[3] + u[4];
    to[0] = u[0] * 0.25f + a + b * (1.0f / 24);
    to[1] = (u[2] - u[1]) * (1.0f / 6) + (u[3] - u[4]) * (1.0f / 12);
    to[2] = a + b * (1.0f / 6) + u[5];
}

/* Floats from one point of packed kernels to the next; + SPAN, like + GAP below: other lines of the cache. */
#define PACKED(n_in, n_out) ((n_in) * (n_out) + SPAN)

/* Pack G w G^T as `multiply` reads it, (point, block of output channels, input channel, 4). */
static void winograd_pack(const float *weight, float *packed, int n_in, int n_out, int is_backward) {
    int step_out = is_backward ? 9 : n_in * 9, step_in = is_backward ? n_out * 9 : 9, n_blocks = n_out / BLOCK;
    for (int block = 0; block < n_blocks; block++)
        for (int in = 0; in < n_in; in++) {
            const float *from = weight + block * BLOCK * step_out + in * step_in;
            quad half[3][6];
            for (int column = 0; column < 3; column++) {
                quad w[3];
                for (int row = 0; row < 3; row++) {
                    int tap = is_backward ? 8 - row * 3 - column : row * 3 + column;
                    for (int r = 0; r < BLOCK; r++) w[row][r] = from[r * step_out + tap];
                }
                kernel_transform(w, half[column]);
            }
            for (int i = 0; i < 6; i++) {
                quad rows[3] = {half[0][i], half[1][i], half[2][i]}, points[6];
                kernel_transform(rows, points);
                for (int j = 0; j < 6; j++)
                    *(quad *)(packed + (i * 6 + j) * PACKED(n_in, n_out) + (block * n_in + in) * BLOCK) = points[j];
            }
        }
}

/* Transform the pixels around the tile at (top, left), zeros outside the image: (point, vector), `stride` apart. */
INLINE void transform_tile(const vec *x, int side, int top, int left, vec *to, int64_t stride) {
    for (int v = 0; v < NV; v++) {
        vec half[6][6];
        for (int j = 0; j < 6; j++) {
            const vec *from = x + ((int64_t)(top - 1) * side + left - 1 + j) * NV + v;
            if ((j == 0 && left == 0) || (j == 5 && left + TILE == side)) {
                for (int i = 0; i < 6; i++) half[j][i] = (vec){};
                continue;
            }
            vec d[6];
            d[0] = top > 0 ? from[0] : (vec){};
            for (int i = 1; i < 5; i++) d[i] = from[(int64_t)i * side * NV];
            d[5] = top + TILE < side ? from[(int64_t)5 * side * NV] : (vec){};
            input_transform(d, half[j]);
        }
        for (int i = 0; i < 6; i++) {
            vec rows[6] = {half[0][i], half[1][i], half[2][i], half[3][i], half[4][i], half[5][i]}, points[6];
            input_transform(rows, points);
            for (int j = 0; j < 6; j++) to[(i * 6 + j) * stride + v] = points[j];
        }
    }
}

/* Convolve with stride 1 and a 3 x 3 kernel; the side is a multiple of 4. */
static __attribute__((noinline)) void convolve_winograd(
    const vec *x, const float *packed, vec *out, int n_in, int n_out, int side, int mode, vec *sums, vec *work
) {
    int n_blocks = n_out / BLOCK;
    int64_t plane = PLANE(side), step_in = n_in * NV + GAP, step_out = n_out * NV + GAP;
    vec *tiles = work, *products = work + POINTS * step_in;
    for (int top = 0; top < side; top += TILE)
        for (int left = 0; left < side; left += TILE) {
            for (int in = 0; in < n_in; in++) transform_tile(x + in * plane, side, top, left, tiles + in * NV, step_in);
            for (int p = 0; p < POINTS; p++)
                for (int block = 0; block < n_blocks; block++)
                    for (int v0 = 0; v0 < NV; v0 += COLUMNS) {
                        vec acc[BLOCK][COLUMNS] = {};
                        const float *w = packed + p * PACKED(n_in, n_out) + block * n_in * BLOCK;
                        multiply(acc, n_in, w, tiles + p * step_in + v0, NV);
                        for (int r = 0; r < BLOCK; r++)
                            for (int v = 0; v < COLUMNS; v++)
                                products[p * step_out + (block * BLOCK + r) * NV + v0 + v] = acc[r][v];
                    }
            for (int channel = 0; channel < n_out; channel++)
                for (int v = 0; v < NV; v++) {
                    vec half[6][4], own[3];
                    if (mode == STATISTICS) memcpy(own, sums + 3 * channel, sizeof own);
                    for (int j = 0; j < 6; j++) {
                        vec m[6];
                        for (int i = 0; i < 6; i++) m[i] = products[(i * 6 + j) * step_out + channel * NV + v];
                        output_transform(m, half[j]);
                    }
                    for (int i = 0; i < TILE; i++) {
                        vec rows[6] = {half[0][i], half[1][i], half[2][i], half[3][i], half[4][i], half[5][i]}, y[4];
                        output_transform(rows, y);
                        vec *to = out + channel * plane + (int64_t)((top + i) * side + left) * NV + v;
                        store(to, NV, y, TILE, mode, own);
                    }
                    if (mode == STATISTICS) memcpy(sums + 3 * channel, own, sizeof own);
                }
        }
}

/* Gradient of the weights of the same convolution: G^T (sum over tiles of A grad A^T * B^T x B) G. */
static __attribute__((noinline)) void weight_gradient_winograd(
    const vec *x, const vec *grad, float *weight_grad, int n_in, int n_out, int side, vec *work
) {
    int across = side / TILE, n_tiles = across * across, at_once = n_tiles % MOST_TILES ? 1 : MOST_TILES;
    int n_pairs = (n_out / BLOCK) * (n_in / BLOCK);
    int64_t plane = PLANE(side), length = at_once * NV, step_in = n_in * length + GAP, step_out = n_out * length + GAP;
    vec *tiles = work, *grads = tiles + POINTS * step_in;
    float *sums = (float *)(grads + POINTS * step_out); /* (point, blocks of n_out, blocks of n_in, 4 x 4) */
    memset(sums, 0, sizeof(float) * POINTS * n_pairs * SPAN);
    for (int tile = 0; tile < n_tiles; tile += at_once) {
        for (int t = 0; t < at_once; t++) {
            int top = (tile + t) / across * TILE, left = (tile + t) % across * TILE;
            for (int in = 0; in < n_in; in++)
                transform_tile(x + in * plane, side, top, left, tiles + (in * at_once + t) * NV, step_in);
            for (int out = 0; out < n_out; out++)
                for (int v = 0; v < NV; v++) {
                    vec half[4][6];
                    for (int j = 0; j < TILE; j++) {
                        const vec *from = grad + out * plane + (int64_t)(top * side + left + j) * NV + v;
                        vec y[4] = {from[0], from[side * NV], from[2 * side * NV], from[3 * side * NV]};
                        output_transposed(y, half[j]);
                    }
                    for (int i = 0; i < 6; i++) {
                        vec rows[4] = {half[0][i], half[1][i], half[2][i], half[3][i]}, points[6];
                        output_transposed(rows, points);
                        for (int j = 0; j < 6; j++)
                            grads[(i * 6 + j) * step_out + (out * at_once + t) * NV + v] = points[j];
                    }
                }
        }
        for (int p = 0; p < POINTS; p++)
            for (int out = 0; out < n_out; out += BLOCK)
                for (int in = 0; in < n_in; in += BLOCK) {
                    const vec *g = grads + p * step_out + out * length, *d = tiles + p * step_in + in * length;
                    int64_t pair = (int64_t)p * n_pairs + (out / BLOCK) * (n_in / BLOCK) + in / BLOCK;
                    for (int part = 0; part < BLOCK; part += COLUMNS) {
                        vec acc[COLUMNS][BLOCK] = {};
                        correlate(acc, (int)length, g, length, d + part * length, length);
                        sum_lanes((vec *)acc, sums + pair * SPAN + part * BLOCK);
                    }
                }
    }
    for (int out = 0; out < n_out; out += BLOCK)
        for (int in = 0; in < n_in; in += BLOCK)
            for (int part = 0; part < GAP; part++) {
                const vec *u = (const vec *)(sums + ((out / BLOCK) * (n_in / BLOCK) + in / BLOCK) * SPAN) + part;
                vec half[6][3];
                for (int j = 0; j < 6; j++) {
                    vec column[6];
                    for (int i = 0; i < 6; i++) column[i] = u[(int64_t)(i * 6 + j) * n_pairs * GAP];
                    kernel_transposed(column, half[j]);
                }
                for (int i = 0; i < 3; i++) {
                    vec rows[6] = {half[0][i], half[1][i], half[2][i], half[3][i], half[4][i], half[5][i]}, taps[3];
                    kernel_transposed(rows, taps);
                    for (int j = 0; j < 3; j++)
                        for (int k = 0; k < LANES; k++) {
                            int to = out + k % BLOCK, from = in + (part * LANES + k) / BLOCK;
                            weight_grad[((int64_t)to * n_in + from) * 9 + i * 3 + j] = taps[j][k];
                        }
                }
            }
}

/* ---- which convolution ---- */

INLINE int is_winograd(const op_t *op) {
    return op->kernel == 3 && op->stride == 1 && op->side % TILE == 0 && op->n_in >= 8 && op->n_out >= 8;
}

static int n_read(const op_t *op) { return (op->n_in + BLOCK - 1) / BLOCK * BLOCK; } /* planes of an input tensor */

static void convolve(const net_t *net, const op_t *op, const float *x, float *out, int mode, vec *sums) {
    const vec *from = (const vec *)x;
    vec *to = (vec *)out, *work = (vec *)net->work;
    if (is_winograd(op)) {
        float *packed = net->work;
        work = (vec *)(net->work + POINTS * PACKED(op->n_in, op->n_out));
        winograd_pack(net->params + op->weight, packed, op->n_in, op->n_out, 0);
        if (mode == STATISTICS)
            convolve_winograd(from, packed, to, op->n_in, op->n_out, op->side, STATISTICS, sums, work);
        else
            convolve_winograd(from, packed, to, op->n_in, op->n_out, op->side, mode, NULL, work);
        return;
    }
    geometry_t g = {op->side, op->side_out, op->kernel, op->stride, 0};
    pack(net->params + op->weight, net->work, op->n_in, n_read(op), op->n_out, &g);
    if (mode == STATISTICS)
        convolve_taps(from, net->work, to, n_read(op), op->n_out, g, STATISTICS, sums);
    else
        convolve_taps(from, net->work, to, n_read(op), op->n_out, g, mode, NULL);
}

/* Gradients of a convolution: of its weights, and of its input, which is assigned or added to. */
static void convolve_backward(const net_t *net, const op_t *op, const float *x, const vec *grad, float *x_grad) {
    geometry_t forward = {op->side, op->side_out, op->kernel, op->stride, 0};
    geometry_t backward = {op->side_out, op->side, op->kernel, op->stride, 1};
    const vec *from = (const vec *)x;
    float *weight_grad = net->param_grads + op->weight;
    vec *work = (vec *)net->work;
    if (is_winograd(op))
        weight_gradient_winograd(from, grad, weight_grad, op->n_in, op->n_out, op->side, work);
    else
        weight_gradient(from, grad, weight_grad, op->n_in, n_read(op), op->n_out, forward, net->work);
    if (!op->needs_grad) return;
    vec *to = (vec *)x_grad;
    int mode = op->is_first_grad ? ASSIGN : ADD;
    if (is_winograd(op)) {
        winograd_pack(net->params + op->weight, net->work, op->n_out, op->n_in, 1);
        work = (vec *)(net->work + POINTS * PACKED(op->n_in, op->n_out));
        convolve_winograd(grad, net->work, to, op->n_out, op->n_in, op->side, mode, NULL, work);
    } else {
        pack(net->params + op->weight, net->work, op->n_out, op->n_out, op->n_in, &backward);
        convolve_taps(grad, net->work, to, op->n_out, op->n_in, backward, mode, NULL);
    }
}

/* ---- BatchNorm ---- */

/* Return mean and 1 / deviation of a channel: of the batch, which moves the running ones, or the running ones. */
static void statistics(const net_t *net, const op_t *op, int channel, const vec *sums, float *mean, float *scale) {
    float *running = net->running + op->running + channel;
    if (sums == NULL) {
        *mean = running[0];
        *scale = 1 / sqrtf(running[op->n_out] + EPSILON);
        return;
    }
    double n = (double)op->side_out * op->side_out * BATCH;
    double shift = total(sums[0]) / n, m = running[0] + shift, variance = total(sums[1]) / n - shift * shift;
    if (variance < 0) variance = 0;
    running[0] += 0.1f * ((float)m - running[0]);
    running[op->n_out] += 0.1f * ((float)(variance * n / (n - 1)) - running[op->n_out]);
    *mean = (float)m;
    *scale = (float)(1 / sqrt(variance + EPSILON));
}

/* out (+)= gamma * (raw - mean) * scale + beta, channel by channel; mean and scale are saved for the backward pass. */
static void normalize(const net_t *net, const op_t *op, const float *raw, float *out, const vec *sums) {
    float *kept = net->kept + op->running;
    int64_t plane = PLANE(op->side_out), n = plane - GAP;
    const float *gamma = net->params + op->norm, *beta = gamma + op->n_out;
    for (int channel = 0; channel < op->n_out; channel++) {
        float mean, scale;
        statistics(net, op, channel, sums ? sums + 3 * channel : NULL, &mean, &scale);
        kept[2 * channel] = mean;
        kept[2 * channel + 1] = scale;
        float a = gamma[channel] * scale, b = beta[channel] - a * mean;
        const vec *from = (const vec *)raw + channel * plane;
        vec *to = (vec *)out + channel * plane;
        if (op->is_first_value)
            for (int64_t i = 0; i < n; i++) to[i] = a * from[i] + splat(b);
        else
            for (int64_t i = 0; i < n; i++) to[i] += a * from[i] + splat(b);
    }
}

/* Gradients of gamma and beta, and of `raw`, which are written to raw_grad. */
static void normalize_backward(const net_t *net, const op_t *op, const float *raw, const float *grad, vec *raw_grad) {
    const float *kept = net->kept + op->running;
    int64_t plane = PLANE(op->side_out), n = plane - GAP;
    double n_values = (double)n * LANES;
    float *gamma_grad = net->param_grads + op->norm, *beta_grad = gamma_grad + op->n_out;
    for (int channel = 0; channel < op->n_out; channel++) {
        const vec *g = (const vec *)grad + channel * plane, *z = (const vec *)raw + channel * plane;
        vec *to = raw_grad + channel * plane, sum_g[2] = {}, sum_gz[2] = {};
        for (int64_t i = 0; i < n; i += 2)
            for (int k = 0; k < 2; k++) {
                sum_g[k] += g[i + k];
                sum_gz[k] += g[i + k] * z[i + k];
            }
        double mean = kept[2 * channel], scale = kept[2 * channel + 1], gamma = net->params[op->norm + channel];
        double of_beta = total(sum_g[0] + sum_g[1]);
        double of_gamma = scale * (total(sum_gz[0] + sum_gz[1]) - mean * of_beta);
        gamma_grad[channel] = (float)of_gamma;
        beta_grad[channel] = (float)of_beta;
        float a = (float)(gamma * scale), b = (float)(-gamma * scale * scale * of_gamma / n_values);
        float c = (float)(-gamma * scale * of_beta / n_values - b * mean);
        for (int64_t i = 0; i < n; i++) to[i] = a * g[i] + (b * z[i] + splat(c));
    }
}

/* ---- activations ---- */

INLINE vec exponential(vec x) { /* relative error below 2e-7 from -87 on; what is below counts as -87 */
    x = choose(x < splat(-87.0f), splat(-87.0f), x);
    vec n = x * 1.44269504f + splat(12582912.0f); /* 1.5 * 2^23: rounds to an integer, which fills the low bits */
    uvec exponent = ((uvec)n - (uvec)splat(12582912.0f)) << 23;
    n -= splat(12582912.0f);
    x = x - n * 0.693359375f + n * 2.12194440e-4f;
    vec p = x * 1.9875691500e-4f + splat(1.3981999507e-3f);
    p = p * x + splat(8.3334519073e-3f);
    p = p * x + splat(4.1665795894e-2f);
    p = p * x + splat(1.6666665459e-1f);
    p = p * x + splat(5.0000001201e-1f);
    p = p * x * x + x + splat(1.0f);
    return (vec)((uvec)p + exponent);
}

/* Comparisons are written so that NaN passes through: a diverged training must show it. */
INLINE vec activated(vec x, int kind) {
    if (kind == RELU) return choose(x <= splat(0), splat(0), x);
    if (kind == HARDSWISH) {
        vec gate = x + splat(3);
        gate = choose(gate < splat(0), splat(0), choose(gate > splat(6), splat(6), gate));
        return x * gate * (1.0f / 6);
    }
    vec e = exponential(choose(x > splat(20), splat(20), x)), t = e * (e + splat(2));
    return x * (t / (t + splat(2)));
}

INLINE vec slope(vec x, int kind) {
    if (kind == RELU) return choose(x <= splat(0), splat(0), splat(1));
    if (kind == HARDSWISH) {
        vec middle = x * (1.0f / 3) + splat(0.5f);
        return choose(x < splat(-3), splat(0), choose(x > splat(3), splat(1), middle));
    }
    vec e = exponential(choose(x > splat(20), splat(20), x)), t = e * (e + splat(2));
    vec inverse = splat(1) / (t + splat(2));
    return inverse * (t + x * (4 * e * (e + splat(1))) * inverse);
}

#define EACH(statement)                                                                                                \
    for (int64_t i = 0; i < n; i++) statement

static void activate(const vec *x, vec *out, int64_t n, int kind) {
    if (kind == RELU) EACH(out[i] = activated(x[i], RELU));
    if (kind == HARDSWISH) EACH(out[i] = activated(x[i], HARDSWISH));
    if (kind == MISH) EACH(out[i] = activated(x[i], MISH));
}

/* x_grad (+)= grad * slope(x). */
static void activate_backward(const vec *x, const vec *grad, vec *x_grad, int64_t n, int kind, int is_first) {
    if (kind == RELU && is_first) EACH(x_grad[i] = grad[i] * slope(x[i], RELU));
    if (kind == RELU && !is_first) EACH(x_grad[i] += grad[i] * slope(x[i], RELU));
    if (kind == HARDSWISH && is_first) EACH(x_grad[i] = grad[i] * slope(x[i], HARDSWISH));
    if (kind == HARDSWISH && !is_first) EACH(x_grad[i] += grad[i] * slope(x[i], HARDSWISH));
    if (kind == MISH && is_first) EACH(x_grad[i] = grad[i] * slope(x[i], MISH));
    if (kind == MISH && !is_first) EACH(x_grad[i] += grad[i] * slope(x[i], MISH));
}

/* ---- pooling ---- */

INLINE int n_around(int at, int side) { return 1 + (at > 0) + (at < side - 1); }

/* out (+)= mean over the 3 x 3 pixels around each that are in the image; or the transpose of that. */
static void pool(const vec *x, vec *out, int n_channels, int side, int is_first, int is_backward) {
    for (int channel = 0; channel < n_channels; channel++, x += PLANE(side), out += PLANE(side))
        for (int y = 0; y < side; y++)
            for (int column = 0; column < side; column++) {
                vec sum[NV] = {}, *to = out + (y * side + column) * NV;
                for (int v = y > 0 ? y - 1 : 0; v <= y + 1 && v < side; v++)
                    for (int u = column > 0 ? column - 1 : 0; u <= column + 1 && u < side; u++) {
                        float share = is_backward ? 1.0f / (n_around(v, side) * n_around(u, side)) : 1;
                        for (int i = 0; i < NV; i++) sum[i] += share * x[(v * side + u) * NV + i];
                    }
                float share = is_backward ? 1 : 1.0f / (n_around(y, side) * n_around(column, side));
                for (int i = 0; i < NV; i++) to[i] = is_first ? share * sum[i] : to[i] + share * sum[i];
            }
}

/* out = mean over 2 x 2 pixels; backward: every one of them (+)= a quarter of the gradient. */
static void halve(const vec *x, vec *out, int n_channels, int side) {
    int half = side / 2;
    for (int channel = 0; channel < n_channels; channel++, x += PLANE(side), out += GAP)
        for (int y = 0; y < half; y++)
            for (int column = 0; column < half; column++, out += NV) {
                const vec *from = x + (2 * y * side + 2 * column) * NV;
                for (int i = 0; i < NV; i++)
                    out[i] = 0.25f * (from[i] + from[NV + i] + from[side * NV + i] + from[(side + 1) * NV + i]);
            }
}

static void halve_backward(const vec *grad, vec *x_grad, int n_channels, int side, int is_first) {
    int half = side / 2;
    for (int channel = 0; channel < n_channels; channel++, grad += PLANE(half), x_grad += PLANE(side))
        for (int y = 0; y < side; y++)
            for (int column = 0; column < side; column++)
                for (int i = 0; i < NV; i++) {
                    vec share = 0.25f * grad[(y / 2 * half + column / 2) * NV + i];
                    vec *to = x_grad + (y * side + column) * NV + i;
                    *to = is_first ? share : *to + share;
                }
}

/* ---- the tape ---- */

#define VALUE(tensor) (net->values + net->value_at[tensor])
#define GRAD(tensor) (net->grads + net->grad_at[tensor])

/* Classify the mean over pixels: return the cross entropy, summed over images whose label is not -1, and count
   correct predictions. The gradient of the logits, of the mean loss of a batch, is kept. */
static double classify(const net_t *net, const op_t *op, const int64_t *labels, int64_t *n_right) {
    int pixels = op->side * op->side, n_classes = net->n_classes;
    const float *weight = net->params + op->weight, *bias = weight + n_classes * op->n_in;
    const vec *x = (const vec *)VALUE(op->in);
    vec *f = (vec *)net->features;
    for (int channel = 0; channel < op->n_in; channel++)
        for (int v = 0; v < NV; v++) {
            vec sum = {};
            for (int pixel = 0; pixel < pixels; pixel++) sum += x[channel * PLANE(op->side) + pixel * NV + v];
            f[channel * NV + v] = sum * (1.0f / pixels);
        }
    float(*logits)[BATCH] = (float(*)[BATCH])net->logits; /* each image's are replaced by their gradient below */
    for (int k = 0; k < n_classes; k++)
        for (int v = 0; v < NV; v++) {
            vec sum = splat(bias[k]);
            const float *w = weight + k * op->n_in;
            for (int channel = 0; channel < op->n_in; channel++) sum += w[channel] * f[channel * NV + v];
            ((vec *)logits[k])[v] = sum;
        }
    double loss = 0;
    *n_right = 0;
    for (int i = 0; i < BATCH; i++) {
        if (labels[i] < 0) continue;
        int best = 0;
        for (int k = 1; k < n_classes; k++)
            if (logits[k][i] > logits[best][i]) best = k;
        float sum = 0, most = logits[best][i];
        for (int k = 0; k < n_classes; k++) sum += expf(logits[k][i] - most);
        loss += logf(sum) + most - logits[labels[i]][i];
        *n_right += best == labels[i];
        for (int k = 0; k < n_classes; k++)
            logits[k][i] = (expf(logits[k][i] - most) / sum - (k == labels[i])) * (1.0f / BATCH);
    }
    return loss;
}

static void classify_backward(const net_t *net, const op_t *op) {
    int pixels = op->side * op->side, n_classes = net->n_classes, n_in = op->n_in;
    const float *weight = net->params + op->weight;
    float *weight_grad = net->param_grads + op->weight, *bias_grad = weight_grad + n_classes * n_in;
    const vec *f = (const vec *)net->features, *g = (const vec *)net->logits;
    vec *x_grad = (vec *)GRAD(op->in);
    for (int k = 0; k < n_classes; k++) {
        vec sum = {};
        for (int v = 0; v < NV; v++) sum += g[k * NV + v];
        bias_grad[k] = (float)total(sum);
        for (int channel = 0; channel < n_in; channel++) {
            sum = (vec){};
            for (int v = 0; v < NV; v++) sum += g[k * NV + v] * f[channel * NV + v];
            weight_grad[k * n_in + channel] = (float)total(sum);
        }
    }
    for (int channel = 0; channel < n_in; channel++)
        for (int v = 0; v < NV; v++) {
            vec sum = {};
            for (int k = 0; k < n_classes; k++) sum += weight[k * n_in + channel] * g[k * NV + v];
            sum *= 1.0f / pixels;
            for (int pixel = 0; pixel < pixels; pixel++) x_grad[channel * PLANE(op->side) + pixel * NV + v] = sum;
        }
}

/* to (+)= from. */
static void add_to(vec *to, const vec *from, int64_t n, int is_first) {
    if (is_first)
        memcpy(to, from, sizeof(vec) * n);
    else
        EACH(to[i] += from[i]);
}

/* Begin the sums of the channels that are normalised: deviations are from the running mean, so that they are small. */
static void begin_sums(const net_t *net, const op_t *op, vec *sums) {
    for (int channel = 0; channel < op->n_out; channel++) {
        sums[3 * channel] = sums[3 * channel + 1] = (vec){};
        sums[3 * channel + 2] = splat(net->running[op->running + channel]);
    }
}

static double forward(const net_t *net, const int64_t *labels, int64_t *n_right, int is_training) {
    double loss = 0;
    static _Thread_local vec sums[3 * MOST_CHANNELS];
    for (const op_t *op = net->ops; op < net->ops + net->n_ops; op++) {
        int64_t plane = PLANE(op->side), n = op->n_in * plane;
        switch (op->kind) {
        case CONVOLVE_NORM:
            if (is_training) begin_sums(net, op, sums);
            convolve(net, op, VALUE(op->in), VALUE(op->raw), is_training ? STATISTICS : ASSIGN, sums);
            normalize(net, op, VALUE(op->raw), VALUE(op->out), is_training ? sums : NULL);
            break;
        case CONVOLVE:
            convolve(net, op, VALUE(op->in), VALUE(op->out), op->is_first_value ? ASSIGN : ADD, NULL);
            break;
        case ACTIVATE:
            activate((const vec *)VALUE(op->in), (vec *)VALUE(op->out), n, net->activation);
            break;
        case COPY:
            add_to((vec *)VALUE(op->out), (const vec *)VALUE(op->in), n, op->is_first_value);
            break;
        case POOL:
            pool((const vec *)VALUE(op->in), (vec *)VALUE(op->out), op->n_in, op->side, op->is_first_value, 0);
            break;
        case HALVE:
            halve((const vec *)VALUE(op->in), (vec *)VALUE(op->out), op->n_in, op->side);
            break;
        case NORM: {
            const vec *x = (const vec *)VALUE(op->in);
            if (is_training) begin_sums(net, op, sums);
            for (int channel = 0; is_training && channel < op->n_in; channel++)
                observe(x + channel * plane, (int)(plane - GAP), sums + 3 * channel);
            normalize(net, op, VALUE(op->in), VALUE(op->out), is_training ? sums : NULL);
            break;
        }
        case CLASSIFY:
            loss = classify(net, op, labels, n_right);
        }
    }
    return loss;
}

static void backward(const net_t *net) {
    vec *raw_grad = (vec *)GRAD(0); /* scratch as large as the largest tensor */
    for (int at = net->n_ops; at--;) {
        const op_t *op = net->ops + at;
        int64_t plane = PLANE(op->side), n = op->n_in * plane;
        switch (op->kind) {
        case CONVOLVE_NORM:
            normalize_backward(net, op, VALUE(op->raw), GRAD(op->out), raw_grad);
            convolve_backward(net, op, VALUE(op->in), raw_grad, GRAD(op->in));
            break;
        case CONVOLVE:
            convolve_backward(net, op, VALUE(op->in), (const vec *)GRAD(op->out), GRAD(op->in));
            break;
        case ACTIVATE:
            activate_backward(
                (const vec *)VALUE(op->in), (const vec *)GRAD(op->out), (vec *)GRAD(op->in), n, net->activation,
                op->is_first_grad
            );
            break;
        case COPY:
            add_to((vec *)GRAD(op->in), (const vec *)GRAD(op->out), n, op->is_first_grad);
            break;
        case POOL:
            pool((const vec *)GRAD(op->out), (vec *)GRAD(op->in), op->n_in, op->side, op->is_first_grad, 1);
            break;
        case HALVE:
            halve_backward((const vec *)GRAD(op->out), (vec *)GRAD(op->in), op->n_in, op->side, op->is_first_grad);
            break;
        case NORM:
            normalize_backward(net, op, VALUE(op->in), GRAD(op->out), (vec *)GRAD(op->in));
            break;
        case CLASSIFY:
            classify_backward(net, op);
        }
    }
}

/* Nesterov's momentum and weight decay, as torch.optim.SGD. */
static void update(const net_t *net, int at, int n, float rate, float momentum, float decay) {
    float *w = net->params + at, *m = net->momenta + at;
    const float *g = net->param_grads + at;
    for (int i = 0; i < n; i++) {
        float step = g[i] + decay * w[i];
        m[i] = momentum * m[i] + step;
        w[i] -= rate * (step + momentum * m[i]);
    }
}

/* Train on a batch, whose images are the value of tensor 1; return the summed loss. */
double train_step(const net_t *net, const int64_t *labels, int64_t *n_right, float rate, float momentum, float decay) {
    double loss = forward(net, labels, n_right, 1);
    backward(net);
    for (const op_t *op = net->ops; op < net->ops + net->n_ops; op++) {
        int is_norm = op->kind == CONVOLVE_NORM || op->kind == NORM, n_weights = 0;
        if (op->kind == CONVOLVE_NORM || op->kind == CONVOLVE)
            n_weights = op->n_in * op->n_out * op->kernel * op->kernel;
        if (op->kind == CLASSIFY) n_weights = (op->n_in + 1) * net->n_classes;
        update(net, op->weight, n_weights, rate, momentum, decay);
        update(net, op->norm, is_norm ? 2 * op->n_out : 0, rate, momentum, decay);
    }
    return loss;
}

/* Evaluate a batch; return the loss summed over images whose label is not -1. */
double evaluate(const net_t *net, const int64_t *labels, int64_t *n_right) { return forward(net, labels, n_right, 0); }
