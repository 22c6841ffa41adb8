import { setFlagsFromString } from 'node:v8'

/**
 * How V8 collects what requests are made of. To be called before anything else is loaded: V8 takes cached code only under the
 * flags that it was made under.
 */
export function setHeapFlags (): void {
  // V8 allocates in the old generation what outlived its first collections. The first ones of a gateway come while its first
  // requests run, so it would take all that requests are made of for long-lived: from then on each request would keep
  // everything it refers to until the next full collection, and pay more for collections than for all of its routing
  setFlagsFromString('--no-allocation-site-pretenuring')
  // what came in of bodies and answers since the last full collection counts as growth of the heap, though it lies outside.
  // By default a busy heap may grow by a tenth, so that every few megabytes all that the gateway consists of is looked
  // through. Where it may double, they are freed by collections of the young generation, at a tenth of the cost
  setFlagsFromString('--heap-growing-percent=100')
}
