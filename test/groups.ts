/*
 * Divides the test files among processes, after the build and before `npm test`. A process pays for the modules of the
 * gateway and for its first start (a second and a half; a fifth of a second for each further start), so files of one kind
 * share one. `npm run test:one` runs a file by itself.
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
}

/** They start in this order: what takes long or waits for engines comes first, so that no core idles at the end. */
const groups: readonly Group[] = [
  { name: 'authors', of: /^template\// },
  { name: 'engine-containers', of: /^e2e\/(llama-container|v1-)/, parts: 2 },
  { name: 'container-runtimes', of: /^kernel\/runtime\/.*(docker|podman|process)-(runtime|pull)\./, parts: 2 },
  { name: 'gpu-kill', of: /gpu-kill/ },
  { name: 'random-scripts', of: /interleavings/ },
  { name: 'e2e', of: /^e2e\//, parts: 2 },
  { name: 'cli', of: /^cli\//, parts: 3 },
  // it measures what its process holds
  { name: 'memory', of: /^wire\/memory\./ },
  { name: 'storm', of: /^chaos\// },
  { name: 'wire', of: /^wire\//, parts: 2 },
  { name: 'api', of: /^plugins\/api\//, parts: 2 },
  { name: 'plugins', of: /^plugins\//, parts: 2 },
  { name: 'kernel', of: /^kernel\//, parts: 2 },
  { name: 'rest', of: /./ }
]

const tests = fileURLToPath(new URL('.', import.meta.url))
const folder = join(tests, 'groups')

const found = (readdirSync(tests, { recursive: true }) as string[]).filter(file => file.endsWith('.test.js')).sort()
const divided = groups.flatMap(({ name, parts = 1 }, at) => {
  const own = found.filter(file => groups.findIndex(({ of }) => of.test(file)) === at)
  return Array.from({ length: parts }, (_, part) => ({
    name: parts === 1 ? name : `${name}-${part + 1}`,
    files: own.filter((_file, i) => i % parts === part)
  }))
}).filter(({ files }) => files.length > 0)

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
for (const [i, { name, files }] of divided.entries()) {
  writeFileSync(join(folder, `${String(i + 1).padStart(2, '0')}-${name}.group.js`),
    `import { runGroup } from '../group.js'\n\nawait runGroup(${JSON.stringify(files, null, 2)})\n`)
}
