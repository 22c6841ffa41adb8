import t from 'tap'
import { z } from 'zod'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../../kernel/testing/index.js'

t.test('[options] of a slot reach the provider checked, with its defaults filled in', async t => {
  const seen: unknown[] = []
  const plugin = createFakeProviderPlugin({
    slotOptions: z.strictObject({ language: z.string().default('en'), loud: z.boolean().default(false) }),
    containerSpec: ({ slot, argv }) => {
      seen.push(slot.options)
      return { command: argv }
    }
  })
  const runtime = new FakeEngineRuntime()
  const slot = (options: string): string => `provider = "fake"\ndevice = "cpu"\n[options]\n${options}\n`
  const gateway = await createTestGateway({
    plugins: [plugin],
    runtime,
    files: { 'etc/svc/slots/good.toml': slot('language = "de"'), 'etc/svc/slots/bad.toml': slot('langage = "de"\nloud = 3') }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  await gateway.slots.load('good')
  t.strictSame(seen.at(-1), { language: 'de', loud: false })
  await t.rejects(gateway.slots.load('bad'), { message: /options\.langage is not a known key; did you mean language\?/ })
  t.match(gateway.slots.status('bad').failure, { code: 'slot.config_error', message: /options\.loud/ })
  await t.rejects(gateway.slots.update('good', { options: { loud: 'very' } }), { code: 'validation.invalid', param: 'options.loud' })
  await t.rejects(gateway.slots.update('good', { options: { volume: 3 } }), { code: 'validation.unknown_keys' })
})

t.test('a provider without options refuses all of them: in a file, when a slot is made and when it is changed', async t => {
  const runtime = new FakeEngineRuntime()
  const slot = 'provider = "fake"\ndevice = "cpu"\n'
  const gateway = await createTestGateway({
    plugins: [createFakeProviderPlugin()],
    runtime,
    files: { 'etc/svc/slots/good.toml': slot, 'etc/svc/slots/bad.toml': `${slot}[options]\nlanguage = "de"\n` }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const refused = { code: 'validation.unknown_keys', param: 'options.language' }
  await t.rejects(gateway.slots.load('bad'), { message: /options\.language is not a known key; there are none here/ })
  await t.rejects(gateway.slots.update('good', { options: { language: 'de' } }), refused)
  await t.rejects(gateway.slots.create('new', { provider: 'fake', device: 'cpu', options: { language: 'de' } }), refused)
  await gateway.slots.update('bad', { options: null })
  await gateway.slots.load('bad')
  t.equal(gateway.slots.status('bad').state, 'ready', 'once they are taken out')
})
