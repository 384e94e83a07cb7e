/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose processes may a user have profiled?
 *
 * In:   an open target, and who asks (SO_PEERCRED).
 * Out:  yes, or the rule that says no, for the daemon's `start`.
 */
#ifndef HEAPSONDE_PEER_H
#define HEAPSONDE_PEER_H

#include <sys/types.h>

#include "user/attach/target.h"
#include "user/common/error.h"

/*
 * May user uid of group gid have t profiled? 0; -EPERM with a text that names the
 * process and the rule; or -ESRCH, it has ended. To be called by root, for a target that was opened
 *with all its rights: what may not be looked at is refused.
 *
 * User 0 may everything. Others may profile processes that they could debug:
 *
 *	- real, effective, saved and file-system user id are all uid, the group ids gid
 *	- it has no capabilities
 *	- it is in the daemon's own user namespace. (Elsewhere "root" and capabilities
 *	  mean something else, and so do the ids by which we judge. Who runs a container
 *	  of his own can run a daemon there, or ask root.)
 *	- its executable is neither set-user-id nor set-group-id, and it was not started
 *	  with more rights than its parent had (AT_SECURE)
 *	- it is dumpable: prctl(PR_SET_DUMPABLE), an executable that its user can read
 *	- the memory open in t is its memory now, that is, the answer is about what will
 *	  be read
 *
 * A yes is for the address space, executable and process that t has open, and stays
 * right: reading through t's descriptors gives nothing once the process has executed
 * something else. It says nothing about later programs under that PID; whoever
 * attaches by PID has to see to that.
 */
int peer__may_profile(const struct target *t, uid_t uid, gid_t gid, struct hs_error *err);

/*
 * May the user be told anything about process pid, such as why it cannot be opened?
 * To be asked before target__open, whose errors tell what the process runs; that is no
 * secret only of processes that the user could debug: the same rules as far as they
 * do not need a target. A yes is for what the PID means just now, and gives no right.
 * 0, -ESRCH no such process, -EPERM.
 */
int peer__may_ask(pid_t pid, uid_t uid, gid_t gid, struct hs_error *err);

#endif /* HEAPSONDE_PEER_H */
