;; What products.ts holds as bytes. A test puts it together anew, and compares.
(module
  (memory (export "memory") 1)
  ;; The scalar products of vectors, one after the other from $vectors on, with the one at 0. Each has $bytes bytes, a multiple of 4.
  ;; The products, of 32 bits each, lie from $out on.
  (func (export "products") (param $count i32) (param $bytes i32) (param $vectors i32) (param $out i32)
    (local $at i32) (local $paired i32) (local $one v128) (local $two v128) (local $sum f32)
    (local.set $paired (i32.and (local.get $bytes) (i32.const -32)))
    (loop $next
      (local.set $one (v128.const f32x4 0 0 0 0))
      (local.set $two (v128.const f32x4 0 0 0 0))
      (local.set $at (i32.const 0))
      (if (local.get $paired) (then
        (loop $eight
          (local.set $one (f32x4.add (local.get $one) (f32x4.mul
            (v128.load (local.get $at))
            (v128.load (i32.add (local.get $vectors) (local.get $at))))))
          (local.set $two (f32x4.add (local.get $two) (f32x4.mul
            (v128.load offset=16 (local.get $at))
            (v128.load offset=16 (i32.add (local.get $vectors) (local.get $at))))))
          (local.set $at (i32.add (local.get $at) (i32.const 32)))
          (br_if $eight (i32.lt_u (local.get $at) (local.get $paired))))))
      (local.set $one (f32x4.add (local.get $one) (local.get $two)))
      (local.set $sum (f32.add
        (f32.add (f32x4.extract_lane 0 (local.get $one)) (f32x4.extract_lane 1 (local.get $one)))
        (f32.add (f32x4.extract_lane 2 (local.get $one)) (f32x4.extract_lane 3 (local.get $one)))))
      (if (i32.lt_u (local.get $at) (local.get $bytes)) (then
        (loop $single
          (local.set $sum (f32.add (local.get $sum) (f32.mul
            (f32.load (local.get $at))
            (f32.load (i32.add (local.get $vectors) (local.get $at))))))
          (local.set $at (i32.add (local.get $at) (i32.const 4)))
          (br_if $single (i32.lt_u (local.get $at) (local.get $bytes))))))
      (f32.store (local.get $out) (local.get $sum))
      (local.set $vectors (i32.add (local.get $vectors) (local.get $bytes)))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br_if $next (local.get $count)))))
