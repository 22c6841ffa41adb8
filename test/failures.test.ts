import { join } from 'node:path'
import t from 'tap'
import { failures } from './failures.js'
import { sources } from './repository.js'

/** Literal titles of a test file, as they stand between its quotes. */
function titlesIn (text: string): string[] {
  return [...text.matchAll(/\b(?:test|prove|check)\(\s*(['`])((?:\\.|(?!\1).)*)\1/g)].map(([, , title]) => title!.replace(/\\(.)/g, '$1'))
}

const numbered = (letter: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${letter}${i + 1}`)

t.test('ids of failures have no gaps', async t => {
  t.strictSame(Object.keys(failures), [...numbered('C', 36), ...numbered('F', 12), ...numbered('T', 24)])
})

t.test('every failure has its tests, and each of them exists', async t => {
  const titles = new Map(sources('test', 'kernel').map(({ path, text }) => [path, titlesIn(text)]))
  for (const [id, { shownBy, why }] of Object.entries(failures)) {
    t.ok(Object.values(shownBy).flat().length > 0 || why !== undefined, `${id} has a test, or says why not`)
    for (const [file, named] of Object.entries(shownBy)) {
      t.ok(named.length > 0, `${id} names a test of ${file}`)
      const inFile = titles.get(join('test', file)) ?? []
      t.strictSame(named.filter(title => inFile.filter(found => found === title).length !== 1), [], `${id}: ${file}`)
    }
  }
})
