/*
 * Divides the test files among processes, after the build and before `npm test`. A process pays for the modules of the
 * gateway and for its first start (a second and a half; a fifth of a second for each further start), so files of one kind
 * share one, or a few, each of which takes the next file when it is through with one. `npm run test:one` runs a file by
 * itself.
 */

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Group {
  readonly name: string
  /** Which files are in it, by their paths under `test/`; the first group that wants a file has it. */
  readonly of: RegExp
  /** How many processes share them: one by default. */
  readonly parts?: number
  /** Those that take longest: they go first, so that no process is left with one when the others are through. */
  readonly long?: RegExp
}

/** They start in this order: what takes long or waits for engines comes first, so that no core idles at the end. */
const groups: readonly Group[] = [
  { name: 'authors', of: /^template\// },
  {
    name: 'container-runtimes', of: /^kernel\/runtime\/.*(docker|podman|process)-(runtime|pull)\./, parts: 2,
    long: /podman-runtime|docker-pull/
  },
  { name: 'plugins', of: /^plugins\/(?!api\/)/, parts: 2, long: /whisper-server|llama-server|tool-servers|transport|embedded|pull|run|trio/ },
  { name: 'api', of: /^plugins\/api\//, parts: 2, long: /sequences|crash|services|slots|settings|apply|comfyui/ },
  { name: 'cli', of: /^cli\//, parts: 2, long: /\/(plugin|serve|engine)/ },
  { name: 'kernel', of: /^kernel\/(?!.*(gpu-kill|interleavings))/, parts: 2, long: /config\/change|process-survival|engine-tasks/ },
  // it measures what its process holds
  { name: 'memory', of: /^wire\/memory\./ },
  { name: 'wire', of: /^wire\//, parts: 2, long: /awake|upstreams|hostile|chained|stop|bodies/ },
  { name: 'engine-containers', of: /^e2e\/(llama-container|v1-)/, parts: 2, long: /-container/ },
  { name: 'gpu-kill', of: /gpu-kill/ },
  { name: 'e2e', of: /^e2e\//, parts: 2, long: /broken-config|disk-faults/ },
  { name: 'random-scripts', of: /interleavings/ },
  { name: 'storm', of: /^chaos\// },
  { name: 'rest', of: /./ }
]

const tests = fileURLToPath(new URL('.', import.meta.url))
const folder = join(tests, 'groups')

const found = (readdirSync(tests, { recursive: true }) as string[]).filter(file => file.endsWith('.test.js')).sort()
const divided = groups.flatMap(({ name, parts = 1, long = /^$/ }, at) => {
  const own = found.filter(file => groups.findIndex(({ of }) => of.test(file)) === at)
  const files = [...own.filter(file => long.test(file)), ...own.filter(file => !long.test(file))]
  if (files.length === 0) return []
  const args = parts === 1 ? [files] : [files, name]
  return Array.from({ length: parts }, (_, part) => ({ name: parts === 1 ? name : `${name}-${part + 1}`, args }))
})

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
for (const [i, { name, args }] of divided.entries()) {
  writeFileSync(join(folder, `${String(i + 1).padStart(2, '0')}-${name}.group.js`),
    `import { runGroup } from '../group.js'\n\nawait runGroup(${args.map(arg => JSON.stringify(arg, null, 2)).join(', ')})\n`)
}
