/* SPDX-License-Identifier: BSD-2-Clause */
/* What all sinks share; see sink.h. */
#include "user/sinks/sink.h"

void sink__free(struct sink *s)
{
	if (s)
		s->ops->free(s);
}
