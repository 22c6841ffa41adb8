/*
 * Divides the test files among processes, after the build and before `npm test`. A process pays for the modules of the
 * gateway and for its first start (a second and a half; a fifth of a second for each further start), so there are as many
 * as run at once, and each takes the next file when it is through with one. `npm run test:one` runs a file by itself.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './repository.js'

/** They measure or look through their whole process: each has one of its own. */
const alone = [/^wire\/memory\./, /^chaos\/storm\./]

/** What takes longest, or waits for engines in containers: it begins first, so that no core idles at the end. */
const first: readonly RegExp[] = [
  /gpu-kill/,
  /^kernel\/runtime\/.*(docker|podman)-(runtime|pull|faults)\./,
  /^e2e\/(llama-container|replicas|v1-containers|side-by-side|image-pull)/,
  /interleavings/,
  /^plugins\/(services\/tool-servers\/tool-servers|providers\/(imagegen\/run|npu-rt\/pull))\./,
  /^(cli\/bundle|kernel\/slots\/(early-kill|replicas\/replica-kill)|wire\/input\/bodies)\./,
  /^cli\/(plugins\/plugin|serve|engine)/,
  /^plugins\/api\/(stacks\/(sequences|crash)|services)\./,
  /^kernel\/(config\/change|runtime\/process\/process-(survival|runtime))\./,
  /^e2e\//,
  /^plugins\/services\/(agents|tool-servers|pull|memory-engine)/,
  /^plugins\/(providers|mcp)\//,
  /^wire\/(awake|stop|runtime-set|upstream|input)/,
  /^kernel\/(runtime|host|state)\//
]

const { tap } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { tap: { jobs: number } }
const tests = fileURLToPath(new URL('.', import.meta.url))
const folder = join(tests, 'groups')

const rank = (file: string): number => {
  const at = first.findIndex(pattern => pattern.test(file))
  return at === -1 ? first.length : at
}
// the compiler leaves what became of a source that is gone
const hasSource = (file: string): boolean => existsSync(join(root, 'test', file.replace(/js$/, 'ts')))
const found = (readdirSync(tests, { recursive: true }) as string[]).filter(file => file.endsWith('.test.js') && hasSource(file)).sort()
const own = found.filter(file => alone.some(pattern => pattern.test(file)))
const shared = found.filter(file => !own.includes(file)).sort((one, other) => rank(one) - rank(other))
// half of them come from the other end: while some wait for engines, others have work for the processor
const ends = [shared, shared.toReversed()]
const groups = [...own.map(file => [[file]]), ...Array.from({ length: tap.jobs }, (_, i) => [ends[i % 2], true])]

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
for (const [i, args] of groups.entries()) {
  writeFileSync(join(folder, `${String(i + 1).padStart(2, '0')}.group.js`),
    `import { runGroup } from '../group.js'\n\nawait runGroup(${args.map(arg => JSON.stringify(arg, null, 2)).join(', ')})\n`)
}
