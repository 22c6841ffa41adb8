import { setFlagsFromString } from 'node:v8'

/**
 * V8 allocates in the old generation what outlived its first collections. The first ones of a gateway come while its first
 * requests run, so it would take all that requests are made of for long-lived: from then on each request would keep
 * everything it refers to until the next full collection, and pay more for collections than for all of its routing.
 * To be called before anything else is loaded: V8 takes cached code only under the flags that it was made under.
 */
export function keepRequestsYoung (): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
