/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The highest rate at which a capture samples, found before it is exported.
 *
 * In:   the path of a capture.
 * Out:  a rate for the trace, of which there is one, at which no block need be left out.
 */
#ifndef HEAPSONDE_CTF_SCAN_H
#define HEAPSONDE_CTF_SCAN_H

/*
 * Read the capture through, if it is a file that can be read twice. Returns the highest
 * rate that was in force, in (0, 1]; 0: it is a pipe, or no rate was found. A capture that
 * is damaged or cut is read up to there; whoever reads it next will say so.
 */
double ctf_scan__highest_rate(const char *path);

#endif /* HEAPSONDE_CTF_SCAN_H */
