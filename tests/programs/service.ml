(* The example of `make demo`: a small service with four domains, which grows.

   Three workers answer requests. Each request is parsed (short-lived lists and
   strings), answered from a table (long-lived), and remembered in a journal that
   nobody ever empties: that is the leak. The main domain renders a report now and
   then, which is a big array of its own.

   Runs for SECONDS (the first argument, default 60). *)

type request = { id : int; path : string list; size : float }

let journal : (int * string) list Atomic.t = Atomic.make []

let rec remember entry =
  let old = Atomic.get journal in
  if not (Atomic.compare_and_set journal old (entry :: old)) then remember entry

let parse line id =
  let path = String.split_on_char '/' line in
  { id; path; size = float_of_int (String.length line) }

let answer table request =
  let key = String.concat "." (List.rev request.path) in
  match Hashtbl.find_opt table key with
  | Some text -> text
  | None ->
    let text = Bytes.make 300 'x' |> Bytes.to_string in
    Hashtbl.replace table key text;
    text

let worker stop number () =
  let table = Hashtbl.create 16 in
  let n = ref 0 in
  while not (Atomic.get stop) do
    incr n;
    let line = Printf.sprintf "shop/%d/item/%d" number (!n mod 5000) in
    let request = parse line !n in
    let text = answer table request in
    if !n mod 4 = 0 then remember (request.id, text ^ line);
    if !n mod 500 = 0 then Unix.sleepf 0.01
  done;
  !n

let report () =
  let sizes = Array.make 20_000 0 in
  List.iteri (fun i (id, _) -> if i < 20_000 then sizes.(i) <- id)
    (Atomic.get journal);
  Array.fold_left max 0 sizes

let () =
  let seconds = if Array.length Sys.argv > 1 then float_of_string Sys.argv.(1) else 60. in
  let stop = Atomic.make false in
  let workers = List.init 3 (fun i -> Domain.spawn (worker stop i)) in
  let until = Unix.gettimeofday () +. seconds in
  while Unix.gettimeofday () < until do
    Unix.sleepf 0.1;
    ignore (Sys.opaque_identity (report ()))
  done;
  Atomic.set stop true;
  let n = List.fold_left (fun sum d -> sum + Domain.join d) 0 workers in
  Printf.printf "%d requests answered\n" n
