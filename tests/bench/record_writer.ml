(* SPDX-License-Identifier: BSD-2-Clause *)
(* What a program would do that profiles itself and wants from it what heapsonde records: Gc.Memprof's
   callbacks write the records of bpf/records.h (in their sizes and with their fields, as far as the process knows
   them) to a file. A stack is written once, with its return addresses, and named by a hash thereafter.

   As fast as it can be done in OCaml without much ado: records are built in one buffer of 64 KiB, clock
   and thread come from stubs that do not allocate. *)

external now_ns : unit -> int = "bench_now_ns" [@@noalloc]
external gettid : unit -> int = "bench_gettid" [@@noalloc]

(* The entries of a raw backtrace: return addresses, or nearly, as OCaml integers. *)
external entries : Printexc.raw_backtrace -> int array = "%identity"

type t = {
  file : Unix.file_descr;
  buffer : Bytes.t;
  mutable used : int;
  mutable last_id : int;
  stacks : (int, unit) Hashtbl.t;
}

let create name =
  { file = Unix.openfile name [ O_WRONLY; O_CREAT; O_TRUNC ] 0o600;
    buffer = Bytes.create 65536;
    used = 0;
    last_id = 0;
    stacks = Hashtbl.create 1024 }

let flush t =
  let rec write from =
    if from < t.used then write (from + Unix.write t.file t.buffer from (t.used - from))
  in
  write 0;
  t.used <- 0

let set32 t at v = Bytes.set_int32_le t.buffer at (Int32.of_int v)
let set64 t at v = Bytes.set_int64_le t.buffer at (Int64.of_int v)

(* Room for [bytes]; writes what all records begin with. The place of the record. *)
let start t kind bytes =
  if t.used + bytes > Bytes.length t.buffer then flush t;
  let at = t.used in
  t.used <- at + bytes;
  set32 t at kind;
  set32 t (at + 4) bytes;
  set64 t (at + 8) (now_ns ());
  set32 t (at + 16) 1;
  set32 t (at + 20) (Domain.self () :> int);
  set32 t (at + 24) 0;
  set32 t (at + 28) (gettid ());
  at

let hash_of stack =
  let h = ref 0x2545f491 in
  for i = 0 to Array.length stack - 1 do
    h := (!h lxor Array.unsafe_get stack i) * 0x100000001b3
  done;
  !h

let tell_stack t hash stack =
  if not (Hashtbl.mem t.stacks hash) then begin
    Hashtbl.add t.stacks hash ();
    let depth = min 4096 (Array.length stack) in
    let at = start t 2 (48 + (8 * depth)) in
    set64 t (at + 32) hash;
    set32 t (at + 40) depth;
    for i = 0 to depth - 1 do
      set64 t (at + 48 + (8 * i)) stack.(i)
    done
  end

let alloc t heap (a : Gc.Memprof.allocation) =
  let stack = entries a.callstack in
  let hash = hash_of stack in
  tell_stack t hash stack;
  t.last_id <- t.last_id + 1;
  let at = start t 1 72 in
  set64 t (at + 32) t.last_id;
  set64 t (at + 40) a.size;
  set64 t (at + 48) a.n_samples;
  set64 t (at + 56) hash;
  set32 t (at + 64) ((heap * 256) + 65536);
  set32 t (at + 68) (Array.length stack);
  Some t.last_id

let event t kind heap id =
  let at = start t kind 48 in
  set64 t (at + 32) id;
  set64 t (at + 40) heap

let tracker t : (int, int) Gc.Memprof.tracker =
  { alloc_minor = (fun a -> alloc t 0 a);
    alloc_major = (fun a -> alloc t 1 a);
    promote =
      (fun id ->
        event t 3 0 id;
        Some id);
    dealloc_minor = (fun id -> event t 4 0 id);
    dealloc_major = (fun id -> event t 4 1 id) }
