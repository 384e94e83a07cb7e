/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the symbols that ocamlopt makes back to names.
 *
 * In:   a symbol of the executable, "camlFoo.$3e$3e$3d_273".
 * Out:  a name such as the debug information would give, "Foo.>>=".
 */
#ifndef HEAPSONDE_OCAML_NAME_H
#define HEAPSONDE_OCAML_NAME_H

#include <stddef.h>

/*
 * Write the name for symbol into out, cut off at cap - 1 bytes (cap >= 1). A symbol
 * that is not OCaml's is copied as it is. The result may not be UTF-8.
 */
void ocaml_name__demangle(const char *symbol, char *out, size_t cap);

#endif /* HEAPSONDE_OCAML_NAME_H */
