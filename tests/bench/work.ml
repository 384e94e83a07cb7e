(* SPDX-License-Identifier: BSD-2-Clause *)
(* Fixed amounts of work, to count instructions of: work KIND N, where KIND is

     alloc     short-lived lists, tuples, closures and strings, N rounds
     major     arrays, bytes and strings of 257 to 3,000 words: the major heap, N rounds
     marshal   values written and read back, N rounds; without sharing, because the table that
               finds what is shared is hashed by address, and takes longer or shorter by chance
     domains   what alloc does, in each of four domains, N rounds in turns of 20: at once, how much
               survives would depend on where a domain is when another one collects

   Prints a number that is the same in every run. *)

let rec build acc i = if i = 0 then acc else build ((i, i * i) :: acc) (i - 1)

let alloc n =
  let sum = ref 0 in
  let kept = Array.make 64 [] in
  for i = 1 to n do
    let l = build [] 200 in
    let m = List.rev_map (fun (a, b) -> (b - a, a)) l in
    let s = String.concat "," (List.map string_of_int [ i; i + 1; i + 2 ]) in
    kept.(i land 63) <- m;
    sum := !sum + List.fold_left (fun acc (a, _) -> acc + a) 0 m + String.length s
  done;
  !sum

let major n =
  let sum = ref 0 in
  let kept = Array.make 64 [||] in
  for i = 1 to n do
    let a = Array.make (257 + (i mod 7 * 100)) i in
    let b = Bytes.create (2056 + (i mod 5 * 5000)) in
    Bytes.unsafe_set b (i land 1023) 'x';
    let c = Array.make 300 a in
    kept.(i land 63) <- a;
    sum := !sum + a.(100) + Char.code (Bytes.get b (i land 1023)) + Array.length c.(7)
  done;
  !sum

let marshal n =
  let value = (List.init 30 (fun i -> (i, string_of_int i)), Array.init 400 float_of_int) in
  let sum = ref 0 in
  for i = 1 to n do
    let text = Marshal.to_string (i, value) [ Marshal.No_sharing ] in
    let (j, (l, a)) : int * ((int * string) list * float array) = Marshal.from_string text 0 in
    sum := !sum + j + List.length l + Array.length a
  done;
  !sum

let domains n =
  let lock = Mutex.create () and changed = Condition.create () in
  let turn = ref 0 in
  let body me () =
    let sum = ref 0 in
    for _ = 1 to n / 20 do
      Mutex.lock lock;
      while !turn <> me do
        Condition.wait changed lock
      done;
      sum := !sum + alloc 20;
      turn := (me + 1) land 3;
      Condition.broadcast changed;
      Mutex.unlock lock
    done;
    !sum
  in
  let others = List.init 3 (fun i -> Domain.spawn (body (i + 1))) in
  let own = body 0 () in
  List.fold_left (fun sum d -> sum + Domain.join d) own others

let () =
  let n = int_of_string Sys.argv.(2) in
  let work =
    match Sys.argv.(1) with
    | "alloc" -> alloc
    | "major" -> major
    | "marshal" -> marshal
    | "domains" -> domains
    | kind -> failwith ("no such work: " ^ kind)
  in
  Printf.printf "%d\n" (work n)
