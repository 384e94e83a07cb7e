(* Backtrace slots of every kind, for test_symbolize.c. *)

let here () = Symbolize_dump.dump (Printexc.get_callstack 100)

let[@inline never] plain x = here (); x + 1
let[@inline] inner x = plain x + 1
let[@inline] middle x = inner (x + 1) * 2
let[@inline never] outer x = middle x + middle (x + 2)

module Sub = struct
  let[@inline never] ( >>= ) x f = let r = f x in r + 1
  class c = object
    method m x = plain x + 1
  end
  module Make (X : sig val v : int end) = struct
    let[@inline never] f' x = plain (x + X.v) + 1
  end
end

module M = Sub.Make (struct let v = 3 end)

let rec loop f n = if n = 0 then f () else 1 + loop f (n - 1)

(* Too wide a range of columns, and too many lines, for the short form. *)
let[@inline never] wide x =
                                                                                           plain x + 1
let[@inline never] tall x =
  1 + (Sys.opaque_identity
     (fun a _ _ ->
        plain a + 1))
    x






    2


    (1 + x)

let[@inline never] two_lines x =
  ignore (Sys.opaque_identity x); 1 + (Sys.opaque_identity plain)
    x

# 5000 "elsewhere.ml"
let[@inline never] far x = plain x + 1
# 700000 "elsewhere.ml"
let[@inline never] too_far x = plain x + 1
# 7 "un été/naïve file.ml"
let[@inline never] accents x = plain x + 1
# 100 "symbolize_prog.ml"

type t = { a : int; b : int ref; c : t option }

(* Allocations that the compiler puts together, for slots that are debuginfo. *)
let[@inline] pair x = (x, x + 1)
let[@inline never] combined x =
  let r = ref x in
  let p = pair x in
  { a = fst p; b = r; c = Some { a = snd p; b = r; c = None } }
let[@inline never] one_alloc x = Some x
let[@inline never] ( @: ) x y = (x, y)
let[@inline never] f' x = ref x

let sampled = ref []

let allocations () =
  let track (info : Gc.Memprof.allocation) =
    sampled := info.callstack :: !sampled;
    None
  in
  let tracker =
    { Gc.Memprof.null_tracker with alloc_minor = track; alloc_major = track }
  in
  let p = Gc.Memprof.start ~sampling_rate:1.0 tracker in
  for i = 1 to 10 do
    ignore (Sys.opaque_identity (combined i));
    ignore (Sys.opaque_identity (one_alloc i @: f' i));
    ignore (Sys.opaque_identity (Array.make 1000 i));
    ignore (Sys.opaque_identity (List.map (fun x -> x + 1) [ i; i ]))
  done;
  Gc.Memprof.stop ();
  Gc.Memprof.discard p;
  List.iter Symbolize_dump.dump !sampled

let raised () =
  Printexc.record_backtrace true;
  match List.find (fun x -> x > plain 3) [ 1; 2 ] with
  | _ -> assert false
  | exception _ -> Symbolize_dump.dump (Printexc.get_raw_backtrace ())

let () =
  ignore (outer 3);
  ignore Sub.(3 >>= fun y -> plain y + 1);
  ignore ((new Sub.c)#m 3);
  ignore (M.f' 3);
  ignore (loop (fun () -> plain 3) 5);
  ignore (List.map plain [ 1; 2 ]);
  ignore (wide 3 + tall 3 + two_lines 3 + far 3 + too_far 3 + accents 3);
  Effect.Deep.match_with plain 3
    { retc = ignore; exnc = raise; effc = (fun _ -> None) };
  Domain.join (Domain.spawn (fun () -> ignore (plain 3)));
  allocations ();
  raised ();
  Symbolize_dump.pause ()
