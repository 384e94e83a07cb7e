/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header, the profile and the summary of a made-up capture; of make-capture.c only,
 * in the middle of which it is included.
 *
 * In:   what the program has done.
 * Out:  chunks.
 */
static void put_text(const char *text)
{
	put_chunk(RAW_JSON, text, strlen(text));
}

static void put_beginning(void)
{
	const struct raw_header header = { RAW_MAGIC, RAW_VERSION, HS_RECORDS_VERSION };

	put(&header, sizeof(header));
	put_text("{\"type\":\"header\",\"version\":1,\"heapsonde\":\"0\",\"kernel\":\"0\","
		 "\"pid\":4242,\"command\":\"./made up\",\"exe\":\"/srv/made\",\"ocaml\":\"5.3.0\","
		 "\"rate\":0.0009765625,\"tier\":10,\"stack_depth\":1024,\"track\":\"all\","
		 "\"clock\":\"CLOCK_MONOTONIC\",\"time\":1000000000000,"
		 "\"wall_offset\":1796000000000000000,\"host\":\"nowhere\",\"mappings\":["
		 "{\"start\":4194304,\"end\":8388608,\"offset\":0,\"file\":\"/srv/made\","
		 "\"build_id\":\"00112233445566778899aabbccddeeff00112233\"}]}");
	put_text("{\"type\":\"profile\",\"profile\":1,\"rate\":0.0009765625,"
		 "\"state\":\"sampling\",\"time\":1000000000000}");
	for (uint32_t k = 0; k < m.n_domains; k++)
		put_domain(HS_REC_DOMAIN_SPAWN, k);
}

static void put_counts(FILE *f, const char *prefix, const struct hs_counts *c)
{
	fprintf(f,
		",\"%sminor_words\":%llu,\"%spromoted_words\":%llu,\"%smajor_words\":%llu,"
		"\"%sminor_collections\":%llu,\"%smajor_collections\":%llu",
		prefix, c->minor_words, prefix, c->promoted_words, prefix, c->major_words, prefix,
		c->minor_collections, prefix, c->major_collections);
}

static void put_summary(void)
{
	static const struct hs_counts zero;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		die("memory");
	fprintf(f,
		"{\"type\":\"summary\",\"reason\":\"target exited\",\"time\":%llu,\"allocs\":%llu,"
		"\"domains\":[",
		(unsigned long long)m.time_ns, (unsigned long long)m.n_allocs);
	for (uint32_t k = 0; k < m.n_domains; k++) {
		const struct domain *d = &m.domains[k];

		fprintf(f, "%s{\"domain\":%u,\"state\":\"alive\",\"sampled\":true,\"rate\":%s",
			k ? "," : "", k, d->tier == TIER ? "0.0009765625" : "0.00048828125");
		put_counts(f, "", &d->counts);
		put_counts(f, "base_", &zero);
		put_counts(f, "end_", &d->counts);
		fprintf(f,
			",\"samples_hit\":%llu,\"samples_kept\":%llu,\"records\":%llu,"
			"\"tracked\":%zu}",
			(unsigned long long)d->samples, (unsigned long long)d->samples,
			(unsigned long long)d->records, d->n_old + d->n_young);
	}
	fputs("],\"folded\":null,\"lost\":{},\"degraded\":{}}", f);
	if (fclose(f))
		die("memory");
	put_text(text);
	free(text);
}
