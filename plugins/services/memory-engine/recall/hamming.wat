;; What hamming.ts holds as bytes. A test puts it together anew, and compares.
(module
  (memory (export "memory") 1)
  ;; In how many bits codes, one after the other from $codes on, differ from the one at 0. Each has $bytes bytes, a multiple of 4.
  ;; The differences, of 16 bits each, lie from $out on.
  (func (export "differences") (param $count i32) (param $bytes i32) (param $codes i32) (param $out i32)
    (local $at i32) (local $sum i64) (local $even i32)
    (local.set $even (i32.and (local.get $bytes) (i32.const -8)))
    (loop $next
      (local.set $sum (i64.const 0))
      (local.set $at (i32.const 0))
      (if (local.get $even) (then
        (loop $word
          (local.set $sum (i64.add (local.get $sum) (i64.popcnt (i64.xor
            (i64.load (local.get $at))
            (i64.load (i32.add (local.get $codes) (local.get $at)))))))
          (local.set $at (i32.add (local.get $at) (i32.const 8)))
          (br_if $word (i32.lt_u (local.get $at) (local.get $even))))))
      (if (i32.lt_u (local.get $at) (local.get $bytes)) (then
        (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (i32.popcnt (i32.xor
          (i32.load (local.get $at))
          (i32.load (i32.add (local.get $codes) (local.get $at))))))))))
      (i64.store16 (local.get $out) (local.get $sum))
      (local.set $codes (i32.add (local.get $codes) (local.get $bytes)))
      (local.set $out (i32.add (local.get $out) (i32.const 2)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br_if $next (local.get $count)))))
