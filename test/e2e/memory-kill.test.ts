import t from 'tap'
import { fakeHindsight } from '../plugins/services/memory/fake-hindsight.js'
import { api, liveHome, startLive } from './live-gateway.js'

t.test('a gateway that is killed while the memory engine destroys something has written down that it was begun', async t => {
  const fake = await fakeHindsight(t)
  const home = await liveHome(t, { 'etc/svc/svc.toml': `[memory]\nenabled = true\nengine = "hindsight"\nurl = "${fake.url}"\n` })
  const deletions = { one: '/api/memory/banks/one?confirm=one', two: '/api/memory/hindsight/v1/default/banks/two' }
  const killed = await startLive(t, home)
  const asked = Object.entries(deletions).map(async ([bank, path]) => {
    fake.bank(bank)
    // the engine has the request, and its answer never comes
    const arrived = new Promise<void>(resolve => { fake.instead.set(`/v1/default/banks/${bank}`, () => resolve()) })
    const answer = fetch(`${killed.url}${path}`, { method: 'DELETE', headers: { 'x-svc-agent': 'ann' } }).catch(() => null)
    await arrived
    return { answer }
  })
  const answers = await Promise.all(asked)
  await killed.kill('SIGKILL')
  for (const { answer } of answers) t.equal(await answer, null, 'the client is told nothing')
  fake.instead.clear()
  const { json } = await api(await startLive(t, home), 'GET', '/api/activity?action=memory.bank.delete')
  const { records } = json as { readonly records: ReadonlyArray<Readonly<Record<string, unknown>>> }
  t.strictSame(records.map(({ target, outcome, actor }) => `${target} ${outcome} ${actor}`).sort(), ['one pending mcp:ann', 'two pending mcp:ann'])
})
