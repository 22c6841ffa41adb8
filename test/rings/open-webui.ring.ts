import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { embeddedGateway } from '../e2e/engine-gateways.js'
import { freePort } from '../ports.js'
import { root } from '../repository.js'
import { openPage, type Page } from './support/chromium.js'
import { lacking } from './support/clients.js'

const run = promisify(execFile)

t.setTimeout(900_000)

interface Finished { readonly code: number, readonly stdout: string, readonly stderr: string }

/** The command line of this checkout, as its user calls it. */
async function svc (url: string, ...args: readonly string[]): Promise<Finished> {
  const command = [join(root, 'dist/cli/svc.js'), ...args, '--url', url]
  return await run(process.execPath, command, { maxBuffer: 16 * 1024 * 1024 })
    .then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }), (error: unknown) => error as Finished)
}

const messages = '[...document.querySelectorAll("[id^=message-]:not(#message-input-container)")]'
const chosen = '(document.querySelector("#model-selector-model-button")?.getAttribute("aria-label") ?? "")'
const isReady = 'document.querySelector("#chat-input") !== null && document.querySelector("#model-selector-model-button") !== null'

/** Makes the first account and opens the page as its user. */
async function signIn (page: Page, origin: string): Promise<void> {
  const answer = await fetch(`${origin}/api/v1/auths/signup`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Ann', email: 'ann@example.org', password: 'a-word-of-12-letters' })
  })
  const { token } = await answer.json() as { token: string }
  await page.goto(`${origin}/auth`)
  await page.until(`document.readyState === 'complete' && location.origin === ${JSON.stringify(origin)}`, 'its page is there')
  await page.read(`localStorage.token = ${JSON.stringify(token)}`)
  await open(page, `${origin}/`)
  // what is new in this version
  await page.until('document.querySelector("[aria-label=Close]") !== null', 'what is new is told')
  await page.until('(() => { const close = document.querySelector("[aria-label=Close]"); close?.click(); return close === null })()', 'nothing lies over the page')
}

async function open (page: Page, url: string): Promise<void> {
  await page.goto(url)
  await page.until(`location.href.startsWith(${JSON.stringify(url)}) && ${isReady}`, `${url} is there`)
}

async function ask (page: Page, words: string): Promise<void> {
  const before = await page.read<number>(`${messages}.length`)
  await page.click('#chat-input')
  await page.type(words)
  await page.press('Enter')
  await page.until(`${messages}.length >= ${before + 2}`, 'the question is asked')
}

const pause = (): Promise<void> => new Promise(resolve => { setTimeout(resolve, 200) })
const lastMessage = `(${messages}.at(-1)?.innerText ?? '')`

t.test('Open WebUI, installed and run by the gateway, is usable through all that slots do', async t => {
  if (await access('/usr/bin/chromium').then(() => false, () => true)) {
    return void lacking(t, 'there is no /usr/bin/chromium; run: test/engines/install-packages.sh browser')
  }
  const port = await freePort()
  const gateway = await embeddedGateway(t, `[plugins.config.api-services.services.openwebui]\nport = ${port}\n`)
  const origin = `http://127.0.0.1:${port}`
  const installed = await svc(gateway.url, 'service', 'install', 'openwebui', '--yes')
  if (installed.code !== 0) return void lacking(t, `Open WebUI cannot be installed: ${installed.stderr.slice(-600)}`)
  t.match(installed.stderr, /its branding may not be changed/, 'its licence is told before')
  t.match(installed.stdout, /0\.12\.4 is installed\.\n.*list_unloaded = true.*\n.*show_loading = true/, 'and what was set for it after')
  t.teardown(() => svc(gateway.url, 'service', 'stop', 'openwebui'))
  let started = await svc(gateway.url, 'service', 'start', 'openwebui')
  // a busy machine takes longer than a start may, and what runs is waited for again
  for (let i = 0; i < 4 && started.code !== 0; i++) started = await svc(gateway.url, 'service', 'start', 'openwebui')
  t.match(started, { code: 0, stdout: 'Open WebUI answers.\n' })
  t.match((await svc(gateway.url, 'service', 'list')).stdout, /openwebui +up +python/)

  const page = await openPage(t)
  await signIn(page, origin)
  const slotState = async (): Promise<string> => (await (await fetch(`${gateway.url}/api/slots/agent/state`)).json() as { state: string }).state

  await t.test('a model that is not loaded is offered, and its cold start shows how far it is', async t => {
    t.equal(await slotState(), 'offline')
    t.match(await page.until(chosen, 'a model is chosen'), /: agent/)
    await ask(page, 'Who are you?')
    await page.until(`/Thinking|Thought/.test(${lastMessage})`, 'the load is shown while it lasts')
    await page.until(`(${lastMessage}).includes(${JSON.stringify(demoSentence.slice(0, 60))})`, 'the answer')
    await page.until(`(() => { const button = [...${messages}.at(-1).querySelectorAll('button')].find(one => /Thought for/.test(one.innerText)); if (button) button.click(); return button })() !== undefined`, 'the thought can be opened')
    t.match(await page.until<string>(`/agent: /.test(${lastMessage}) && ${lastMessage}`, 'the thought is opened'), /agent: \S/, 'and says what went on')
  })

  const chat = await page.until<string>('/\\/c\\//.test(location.pathname) && location.href', 'the chat is saved')
  await t.test('a saved chat has the same model after an idle unload', async t => {
    const changed = await fetch(`${gateway.url}/api/slots/agent/config`, {
      method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ idle_timeout_s: 1 })
    })
    t.equal(changed.status, 200)
    for (const end = performance.now() + 120_000; await slotState() !== 'offline' && performance.now() < end;) await pause()
    t.equal(await slotState(), 'offline', 'it was unloaded by itself')
    await open(page, chat)
    t.match(await page.until(`${messages}.length >= 2 && ${chosen}`, 'the saved chat'), /: agent/)
    await ask(page, 'And now?')
    await page.until(`(${lastMessage}).includes(${JSON.stringify(demoSentence.slice(0, 60))})`, 'the answer of the same model')
  })

  await t.test('stop ends the answer at its engine', async t => {
    await open(page, `${origin}/?models=endless`)
    t.match(await page.until(`/endless/.test(${chosen}) && ${chosen}`, 'the other model is chosen'), /endless/)
    await ask(page, 'Go on')
    await page.until(`/trick[^]*trick/.test(${lastMessage})`, 'the answer runs')
    const inFlight = async (): Promise<string[]> => {
      const { requests } = await (await fetch(`${gateway.url}/api/requests`)).json() as { requests: Array<{ slot: string | null }> }
      return requests.flatMap(({ slot }) => slot ?? [])
    }
    t.ok((await inFlight()).includes('endless'), 'the slot works on it')
    await page.click('[aria-label^="Stop"]')
    for (const end = performance.now() + 30_000; (await inFlight()).includes('endless') && performance.now() < end;) await pause()
    t.notOk((await inFlight()).includes('endless'), 'and on nothing any more, though its model never stops by itself')
  })

  t.equal((await svc(gateway.url, 'service', 'uninstall', 'openwebui', '--data', '--yes')).code, 0)
  await t.rejects(fetch(origin), 'nothing is left of it')
  t.equal(await gateway.kill('SIGTERM'), 0)
})
