import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { embeddedGateway } from '../e2e/engine-gateways.js'
import { eventually } from '../kernel/runtime/support.js'
import { freePort } from '../ports.js'
import { root } from '../repository.js'
import { openPage, type Page } from './support/chromium.js'
import { brought, lacking } from './support/clients.js'
import { CODE_WORD, QUESTION, register } from './support/register.js'
import { scriptedModel } from './support/scripted-model.js'

const run = promisify(execFile)

t.setTimeout(1_800_000)

interface Finished { readonly code: number, readonly stdout: string, readonly stderr: string }

/** The command line of this checkout, as its user calls it. */
async function svc (url: string, ...args: readonly string[]): Promise<Finished> {
  const command = [join(root, 'dist/cli/svc.js'), ...args, '--url', url]
  return await run(process.execPath, command, { maxBuffer: 16 * 1024 * 1024 })
    .then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }), (error: unknown) => error as Finished)
}

/** A minute on two idle cores. */
const INDEXED_MS = 600_000

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

const hasFailed = 'document.body.innerText.includes("500: Internal Error")'

/** Its script gives up for good when one of its first questions fails: the page is loaded again, as people do. */
async function open (page: Page, url: string): Promise<void> {
  for (let triesLeft = 3; ; triesLeft--) {
    await page.goto(url)
    await page.until(`location.href.startsWith(${JSON.stringify(url)}) && (${isReady} || ${hasFailed})`, `${url} is there`)
    if (triesLeft === 0 || !await page.read<boolean>(hasFailed)) return
  }
}

/** Gives the page a file, as its button does. */
async function attach (page: Page, name: string, text: string): Promise<void> {
  await page.read(`(() => {
    const input = document.querySelector('input[type=file]')
    const chosen = new DataTransfer()
    chosen.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'text/plain' }))
    input.files = chosen.files
    input.dispatchEvent(new Event('change', { bubbles: true }))
  })()`)
  await page.until(`document.querySelector('#message-input-container')?.innerText.includes(${JSON.stringify(name)})`, `${name} is attached`)
}

/** Notes what the page plays, and how it ended. */
const noted = `(() => {
  window.heard = []
  const play = HTMLMediaElement.prototype.play
  HTMLMediaElement.prototype.play = function () {
    let seconds = 0
    // the page takes its source away at the end
    this.addEventListener('timeupdate', () => { seconds = Math.max(seconds, this.currentTime) })
    this.addEventListener('ended', () => window.heard.push({ seconds }), { once: true })
    this.addEventListener('error', () => window.heard.push({ error: this.error?.message }), { once: true })
    return play.call(this)
  }
  return true
})()`

/** A slot that speaks with espeak-ng; no file where that, or what makes an MP3 of it, is not installed. */
async function speaking (): Promise<Record<string, string>> {
  const are = await Promise.all(['/usr/bin/espeak-ng', '/usr/bin/lame'].map(program => access(program).then(() => true, () => false)))
  if (are.includes(false)) return {}
  const engine = join(root, 'test/rings/browser/espeak-engine.mjs')
  return {
    'etc/svc/engines/espeak.toml': `name = "espeak"\napiVersion = 1\nneeds_model = false\nslot_types = ["tts"]\nprocess = ["node", ${JSON.stringify(engine)}, "{port}", "{host}"]\n` +
      '[health]\npath = "/health"\n[surfaces.speech]\npath = "/v1/audio/speech"\n',
    'etc/svc/slots/tts.toml': 'type = "tts"\nprovider = "espeak"\ndevice = "cpu"\nidle_timeout_s = 0\n'
  }
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
  const reader = await scriptedModel(t, 'none', { chatOnly: true })
  const passages: boolean[] = []
  reader.asked = async body => {
    passages.push(body.includes(`code word of Greta is ${CODE_WORD}`))
    return passages.at(-1) === true ? `She says ${CODE_WORD}.` : 'Nothing is said of her.'
  }
  const models = await brought(t, 'minilm.sh')
  const voice = await speaking()
  const gateway = await embeddedGateway(t,
    // the words of the user are the question, and an engine without a batch of its own is asked for long pieces
    `[plugins.config.api-services.services.openwebui]\nport = ${port}\nenv = { ENABLE_RETRIEVAL_QUERY_GENERATION = "False", CHUNK_SIZE = "4000" }\n`, {
      'etc/svc/upstreams.toml': `[[upstream]]\nname = "reader"\nurl = "${reader.url}/v1"\n`,
      ...models === null ? {} : {
        'etc/svc/slots/embed.toml': `type = "embedding"\ndefault = true\ndevice = "cpu"\nidle_timeout_s = 0\n[model]\ndefault = "${models}/minilm.gguf"\ncontext_size = 512\n`
      },
      ...voice
    })
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
  await eventually('it is up', async () => /openwebui +up +python/.test((await svc(gateway.url, 'service', 'list')).stdout))

  const page = await openPage(t)
  await signIn(page, origin)
  const slotState = async (): Promise<string> => (await (await fetch(`${gateway.url}/api/slots/agent/state`)).json() as { state: string }).state

  await t.test('a model that is not loaded is offered, and its cold start shows how far it is', async t => {
    t.equal(await slotState(), 'offline')
    t.match(await page.until(`/: /.test(${chosen}) && ${chosen}`, 'a model is chosen'), /: agent/)
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
    for (const end = performance.now() + 300_000; await slotState() !== 'offline' && performance.now() < end;) await pause()
    t.equal(await slotState(), 'offline', 'it was unloaded by itself')
    await open(page, chat)
    t.match(await page.until(`${messages}.length >= 2 && /: /.test(${chosen}) && ${chosen}`, 'the saved chat'), /: agent/)
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
    for (const end = performance.now() + 300_000; (await inFlight()).includes('endless') && performance.now() < end;) await pause()
    t.notOk((await inFlight()).includes('endless'), 'and on nothing any more, though its model never stops by itself')
  })

  await t.test('a document of half a megabyte is indexed by the embedding slot, and found again in the chat that it is attached to', async t => {
    if (models === null) return
    await open(page, `${origin}/?models=scripted`)
    await page.until(`/scripted/.test(${chosen})`, 'the model that reads is chosen')
    await attach(page, 'register.txt', register())
    const spins = 'document.querySelector("#message-input-container .spinner_ajPY") !== null'
    const end = performance.now() + INDEXED_MS
    while (await page.read<boolean>(spins) && performance.now() < end) await pause()
    t.equal(await page.read(spins), false, 'it is indexed')
    t.match(await (await fetch(`${gateway.url}/api/slots/embed`)).json(), { state: /^(ready|serving|idle)$/ }, 'by the slot that embeds')
    passages.length = 0
    await ask(page, QUESTION)
    await page.until(`(${lastMessage}).includes('She says ${CODE_WORD}.')`, 'the answer that only the document gives')
    t.ok(passages.includes(true), 'the model was given the passage')
    t.match(await page.until(`/Source|register/.test(${lastMessage}) && ${lastMessage}`, 'its source'), /Source|register\.txt/)
  })

  await t.test('an answer is read aloud by the slot that speaks', async t => {
    if (voice['etc/svc/slots/tts.toml'] === undefined) return void lacking(t, 'there is no espeak-ng or no lame; run: test/engines/install-packages.sh speech')
    await open(page, `${origin}/?models=scripted`)
    await page.until(`/scripted/.test(${chosen})`, 'the model is chosen')
    await ask(page, 'Who is she?')
    await page.until(`(${lastMessage}).includes('Nothing is said of her.')`, 'the answer')
    await page.read(noted)
    await page.click('[aria-label="Read Aloud"]')
    const heard = await page.until<Array<{ seconds?: number }>>('window.heard.length > 0 && window.heard', 'it was played to its end')
    t.ok((heard[0]!.seconds ?? 0) > 0.2, JSON.stringify(heard))
    t.match((await svc(gateway.url, 'slot', 'logs', 'tts')).stdout, /"input": ?"Nothing is said of her\.?"/, 'it is the answer that the slot spoke')
  })

  t.equal((await svc(gateway.url, 'service', 'uninstall', 'openwebui', '--data', '--yes')).code, 0)
  await t.rejects(fetch(origin), 'nothing is left of it')
  t.equal(await gateway.kill('SIGTERM'), 0)
})
