#!/usr/bin/env node
import { isGateway, setHeapFlags } from './heap-flags.js'
import { writeOnly } from './lost-output.js'
import { collectWhenQuiet } from './quiet-heap.js'
import { version } from './version.js'

const [, , ...words] = process.argv
if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
  // scripts ask for it often: nothing else is loaded
  writeOnly(`svc ${version}\n`)
} else {
  if (isGateway(words)) {
    setHeapFlags()
    collectWhenQuiet()
  }
  const { main } = await import('./main.js')
  process.exit(await main(process.argv, process))
}
