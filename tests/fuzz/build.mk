# SPDX-License-Identifier: BSD-2-Clause
#
# How the fuzzers are built; a part of the Makefile.
#
# In:   tests/fuzz/fuzz_NAME.c and all of user/ but main.
# Out:  $(B)/fuzz/KIND/NAME. All with ASan and UBSan, and the same sources for each KIND:
#         replay      gcc, tests/fuzz/replay.c: hands over files one after the other
#         libfuzzer   clang's libFuzzer
#         afl         AFL++
#
# user/ is compiled anew for each kind, because what fuzzers look at is how it runs.

FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SRCS := $(filter-out user/cli/main.c,$(USER_SRCS)) tests/fuzz/fuzz.c

# What is undefined is an end. float-cast-overflow is not among "undefined".
FUZZ_CHECKS := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
# clang warns of fields that seccomp.h leaves out.
FUZZ_CFLAGS := -std=gnu17 -Wall -Wextra -Wno-missing-field-initializers -Werror -D_GNU_SOURCE -I. -I$(B)/gen \
	-DHEAPSONDE_VERSION='"$(VERSION)"' -O1 -g $(FUZZ_CHECKS)
# fuzz_options.c stops commands where they have read their options.
FUZZ_WRAPS := common_args__parse exit argp_state_help
$(B)/fuzz/%/options: FUZZ_LDFLAGS := $(FUZZ_WRAPS:%=-Wl,--wrap=%)

AFL_CC ?= afl-clang-fast

# fuzz_kind KIND,COMPILER,FLAGS,MAIN: MAIN is what makes a program of a fuzzer.
define fuzz_kind
FUZZ_$(1)_OBJS := $$(FUZZ_SRCS:%.c=$$(B)/fuzz/$(1)/obj/%.o) $$(B)/fuzz/$(1)/obj/gen/profile.pb-c.o

$$(B)/fuzz/$(1)/obj/%.o: %.c $$(SKEL) $$(PROFILE_GEN).h $$(PAGE)
	@mkdir -p $$(@D)
	$$(say) FUZZ $$@
	$$(Q)$(2) $$(FUZZ_CFLAGS) $(3) -MMD -MP -c $$< -o $$@

$$(B)/fuzz/$(1)/obj/gen/profile.pb-c.o: $$(PROFILE_GEN).c
	@mkdir -p $$(@D)
	$$(Q)$(2) $$(FUZZ_CFLAGS) $(3) -w -c $$< -o $$@

$$(B)/fuzz/$(1)/lib.a: $$(FUZZ_$(1)_OBJS)
	@rm -f $$@
	$$(Q)ar rcs $$@ $$^

$$(B)/fuzz/$(1)/%: $$(B)/fuzz/$(1)/obj/tests/fuzz/fuzz_%.o $$(B)/fuzz/$(1)/lib.a $(5)
	$$(say) LINK $$@
	$$(Q)$(2) $$(FUZZ_CFLAGS) $$(FUZZ_LDFLAGS) $(3) $(4) $$^ $$(LDLIBS) -o $$@

.PHONY: fuzz-$(1)
fuzz-$(1): $$(FUZZ_NAMES:%=$$(B)/fuzz/$(1)/%)

-include $$(FUZZ_$(1)_OBJS:.o=.d) $$(FUZZ_NAMES:%=$$(B)/fuzz/$(1)/obj/tests/fuzz/fuzz_%.d)
endef

# The objects are kept, though only rules made of patterns name them.
.SECONDARY:

$(eval $(call fuzz_kind,replay,$(CC),,,$(B)/fuzz/replay/obj/tests/fuzz/replay.o))
$(eval $(call fuzz_kind,libfuzzer,$(CLANG),-fsanitize=fuzzer-no-link,-fsanitize=fuzzer,))
# AFL++ has a driver of its own for these functions.
$(eval $(call fuzz_kind,afl,AFL_QUIET=1 $(AFL_CC),-fsanitize=fuzzer-no-link,-fsanitize=fuzzer,))
