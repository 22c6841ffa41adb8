#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isGateway, setHeapFlags } from '../heap-flags.js'
import { writeOnly } from '../lost-output.js'
import { collectWhenQuiet } from '../quiet-heap.js'
import type * as main from '../main.js'

const [, , ...words] = process.argv
if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
  // scripts ask for it often: nothing else is loaded. A release has a version of its own in the package.json of its tree
  const about = readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8')
  writeOnly(`svc ${(JSON.parse(about) as { version: string }).version}\n`)
} else {
  if (isGateway(words)) {
    setHeapFlags()
    collectWhenQuiet()
  }
  void import('./chunks.js')
    .then(({ loadChunk }) => (loadChunk('main.cjs') as typeof main).main(process.argv, process))
    .then(code => process.exit(code))
}
