#!/usr/bin/env node
import { isGateway, setHeapFlags } from '../heap-flags.js'
import { writeOnly } from '../lost-output.js'
import type * as main from '../main.js'

/** Set where the bundle is made. */
declare const SVC_VERSION: string

const [, , ...words] = process.argv
if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
  // scripts ask for it often: nothing else is loaded
  writeOnly(`svc ${SVC_VERSION}\n`)
} else {
  if (isGateway(words)) setHeapFlags()
  void import('./chunks.js')
    .then(({ loadChunk }) => (loadChunk('main.cjs') as typeof main).main(process.argv, process))
    .then(code => process.exit(code))
}
