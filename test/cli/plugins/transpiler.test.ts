import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Transpiler } from '../../../cli/plugins/transpiler.js'
import { root } from '../../repository.js'

const tsconfig = readFileSync(join(root, 'plugin-template/tsconfig.json'), 'utf8').replace('["node"]', '[]')
const source = (word: string): string => `import type { Note } from './note.js'

export function noteOf (text: string): Note {
  return { text: text.${word}() }
}
`

t.test('a source that changed is written at once as the compiler writes it a little later, with its map', async t => {
  const folder = t.testdir({
    'package.json': '{"type":"module"}',
    'tsconfig.json': tsconfig,
    'node_modules': { typescript: t.fixture('symlink', join(root, 'node_modules/typescript')) },
    'src': { 'index.ts': source('trim'), 'note.ts': 'export interface Note { readonly text: string }\n' },
    'test': {}
  })
  const [index, built] = [join(folder, 'src/index.ts'), join(folder, 'dist/src/index.js')]
  const transpiler = await Transpiler.of(folder, 'tsc')
  await transpiler!.update()
  t.throws(() => readFileSync(built), { code: 'ENOENT' }, 'what was there at the start is the compiler\'s')
  writeFileSync(index, source('toUpperCase'))
  utimesSync(index, 1, 1)
  await transpiler!.update()
  const atOnce = [built, `${built}.map`].map(path => readFileSync(path, 'utf8'))
  t.match(atOnce[0], 'text.toUpperCase()')
  rmSync(join(folder, 'dist'), { recursive: true })
  execFileSync(process.execPath, [join(root, 'node_modules/typescript-native/bin/tsc'), '-p', folder], { stdio: 'inherit' })
  const [code, map] = [built, `${built}.map`].map(path => readFileSync(path, 'utf8'))
  t.equal(atOnce[0], code)
  t.match(JSON.parse(atOnce[1]!), { sources: (JSON.parse(map!) as { sources: string[] }).sources })
})

t.test('a package that is built by more than the compiler, or by one that cannot be called, is left to its scripts', async t => {
  const folder = t.testdir({
    'package.json': '{"type":"module"}',
    'node_modules': { typescript: t.fixture('symlink', join(root, 'node_modules/typescript-native')) }
  })
  t.equal(await Transpiler.of(folder, 'tsc && cp src/page.html dist'), null)
  t.equal(await Transpiler.of(folder, 'tsc'), null)
  t.equal(await Transpiler.of(folder, undefined), null)
})
