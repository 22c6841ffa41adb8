import t from 'tap'
import { z } from 'zod'
import { defineRuntime, type RuntimeDefinition } from '../../../kernel/contract/index.js'

t.test('a driver that is declared badly is refused by what it lacks, when it is declared', async t => {
  const open = (): Promise<never> => Promise.reject(new Error('away'))
  const good = { name: 'shed', form: 'process', open, slotOptions: z.strictObject({ zone: z.string().optional() }), settingsOf: () => ({}) }
  const cases: ReadonlyArray<readonly [changed: object, problem: RegExp]> = [
    [{ name: 'The Shed' }, /^runtime 'The Shed': name must be kebab-case$/],
    [{ name: 'docker' }, /the gateway has a runtime of that name/],
    [{ form: 'vm' }, /^runtime 'shed': form must be one of container, process$/],
    [{ open: undefined }, /open must be a function/],
    [{ settingsOf: {} }, /settingsOf must be a function/],
    [{ wanted: true }, /wanted must be a function/],
    [{ slotOptions: { zone: 'string' } }, /slotOptions must be a schema of zod/],
    [{ slotOptions: null }, /slotOptions must be a schema of zod/],
    [{ slotOptions: z.strictObject({ zone: z.string() }) }, /slotOptions must accept an empty table/]
  ]
  for (const [changed, message] of cases) t.throws(() => defineRuntime({ ...good, ...changed } as RuntimeDefinition), { name: 'TypeError', message })
  t.match(defineRuntime(good as RuntimeDefinition), { name: 'shed' })
})
