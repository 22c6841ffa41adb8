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
