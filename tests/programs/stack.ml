(* SPDX-License-Identifier: BSD-2-Clause *)
(* Allocates one block of a size of its own in each of many kinds of places, and
   prints what Printexc.get_callstack says there, on the same line of the same
   function:

     place SIZE NAME FRAME…      FRAME = function|file|line|start|end|inlined

   The innermost frame is where the two calls differ: the characters of the line. *)

external through : ('a -> 'b) -> 'a -> 'b = "test_call_through"

let seen : (int * string * Printexc.raw_backtrace * Obj.t) list ref = ref []

let keep size name stack v =
  assert (Obj.size (Obj.repr v) = size);
  seen := (size, name, stack, Obj.repr v) :: !seen

(* A string of 8 * (n - 1) bytes has n fields; Bytes.create is the primitive itself, so
   that no frame comes in between. *)
let max = 1024
let[@inline never] plain () = keep 101 "a function" (Printexc.get_callstack max) (Bytes.create 800)
let[@inline never] tuple i = keep 14 "a tuple" (Printexc.get_callstack max) (i, i, i, i, i, i, i, i, i, i, i, i, i, i)
let[@inline never] major () = keep 5001 "a big array" (Printexc.get_callstack max) (Array.make 5001 0)

let[@inline never] third () = keep 103 "nested calls" (Printexc.get_callstack max) (Bytes.create 816); 1
let[@inline never] second () = 1 + third ()
let[@inline never] first () = 1 + second ()

let[@inline always] inlined3 () = keep 104 "inlined calls" (Printexc.get_callstack max) (Bytes.create 824); 1
let[@inline always] inlined2 () = 1 + inlined3 ()
let[@inline never] inlined1 () = 1 + inlined2 ()

let[@inline never] in_iter () =
  List.iter (fun () -> keep 105 "a closure in List.iter" (Printexc.get_callstack max) (Bytes.create 832)) [ () ]

let[@inline never] in_fold () =
  ignore (Hashtbl.fold (fun k () _ -> keep 106 "a closure in Hashtbl.fold" (Printexc.get_callstack max) (Bytes.create 840); k)
    (let h = Hashtbl.create 1 in Hashtbl.add h 1 (); h) 0)

let callback i = keep 107 "a callback from C" (Printexc.get_callstack max) (Bytes.create 848); i
let[@inline never] in_callback () = 1 + through callback 1

let callback2 i = keep 108 "two callbacks deep" (Printexc.get_callstack max) (Bytes.create 856); i
let[@inline never] in_callback2 () = 1 + through (fun i -> 1 + through callback2 i) 1

type _ Effect.t += Ask : unit Effect.t

let[@inline never] fiber3 () = keep 109 "three fibers deep" (Printexc.get_callstack max) (Bytes.create 864); 1
let[@inline never] fiber2 () = try 1 + fiber3 () with effect Ask, k -> Effect.Deep.continue k ()
let[@inline never] fiber1 () = try 1 + fiber2 () with effect Ask, k -> Effect.Deep.continue k ()
let[@inline never] in_fibers () = try 1 + fiber1 () with effect Ask, k -> Effect.Deep.continue k ()

let[@inline never] resumed () =
  Effect.perform Ask; keep 110 "after an effect" (Printexc.get_callstack max) (Bytes.create 872); 1

let[@inline never] handler () = keep 111 "in an effect handler" (Printexc.get_callstack max) (Bytes.create 880)
let[@inline never] in_handler () =
  try 1 + resumed () with effect Ask, k -> handler (); Effect.Deep.continue k ()

let callback3 i = keep 112 "a callback from C in a fiber" (Printexc.get_callstack max) (Bytes.create 888); i
let[@inline never] fiber_through () =
  try 1 + through callback3 1 with effect Ask, k -> Effect.Deep.continue k ()

let[@inline never] in_exception () =
  try ignore (Sys.opaque_identity (List.hd [])) with Failure _ -> keep 113 "an exception handler" (Printexc.get_callstack max) (Bytes.create 896)

let delayed = lazy (keep 114 "a lazy value" (Printexc.get_callstack max) (Bytes.create 904))

class virtual ['a] base = object (self)
  method virtual go : 'a -> unit
  method start x = self#go x; ignore (Sys.opaque_identity x)
end

class derived = object
  inherit [int] base
  method go _ = keep 115 "a method" (Printexc.get_callstack max) (Bytes.create 912)
end

module Make (X : sig val size : int end) = struct
  let[@inline never] go () = keep X.size "a functor" (Printexc.get_callstack max) (Bytes.create (8 * (X.size - 1)))
end

module Made = Make (struct let size = Sys.opaque_identity 116 end)

let partial a b c = keep (a + b + c) "a partial application" (Printexc.get_callstack max) (Bytes.create (8 * (a + b + c - 1))); 1

let rec deep n =
  if n = 0 then (keep 118 "deep recursion" (Printexc.get_callstack max) (Bytes.create 936); 0)
  else 1 + deep (n - 1)

let[@inline never] in_thread () = keep 119 "a thread" (Printexc.get_callstack max) (Bytes.create 944)
let[@inline never] in_domain () = keep 120 "a domain" (Printexc.get_callstack max) (Bytes.create 952)

(* A sub-block of a combined allocation, which has the line of its own; the tuple around
   it, allocated with it, has the next. *)
let[@inline never] combined i =
  let stack = Printexc.get_callstack max in let b = (i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i) in
  Sys.opaque_identity (i, b, stack)

let frame s =
  match Printexc.Slot.location s with
  | None -> "?"
  | Some l ->
      Printf.sprintf "%s|%s|%d|%d|%d|%b"
        (Option.value (Printexc.Slot.name s) ~default:"")
        l.filename l.line_number l.start_char l.end_col
        (Printexc.Slot.is_inline s)

let print (size, name, stack, _) =
  let frames =
    match Printexc.backtrace_slots stack with
    | None -> []
    | Some a -> List.map frame (Array.to_list a)
  in
  Printf.printf "place\t%s\n"
    (String.concat "\t" (string_of_int size :: name :: frames))

let work () =
  plain ();
  tuple 1;
  major ();
  ignore (1 + first ());
  ignore (1 + inlined1 ());
  in_iter ();
  in_fold ();
  ignore (in_callback ());
  ignore (in_callback2 ());
  ignore (in_fibers ());
  ignore (in_handler ());
  ignore (fiber_through ());
  in_exception ();
  Lazy.force delayed;
  (new derived)#start 1;
  Made.go ();
  let add = Sys.opaque_identity (partial 100 10) in
  ignore (1 + add 7);
  ignore (1 + deep (Harness.int_option "--deep" 200));
  Thread.join (Thread.create (fun () -> in_thread (); ignore (Sys.opaque_identity 0)) ());
  Domain.join (Domain.spawn (fun () -> in_domain (); ignore (Sys.opaque_identity 0)));
  let _, twenty_one, stack = combined 1 in
  keep 21 "a part of a combined allocation" stack twenty_one

let () =
  Harness.run ~domains:1 work;
  List.iter print (List.rev !seen)
