import t from 'tap'
import { shellWords } from '../../../kernel/contract/index.js'
import { createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { docsPage } from './docs-page.js'

interface Sent { readonly url: string, readonly init: RequestInit }

/** The request of a curl line, as curl would send it. */
function requestOf (line: string): Sent {
  const [curl, ...words] = shellWords(line.replaceAll('\\\n', ' '))
  if (curl !== 'curl') throw new Error(`no curl line: ${line}`)
  const headers: Record<string, string> = {}
  const form = new FormData()
  let [url, method, body]: [string, string | null, string | FormData | null] = ['', null, null]
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-N') continue
    if (word === '-o') words.shift()
    else if (word === '-X') method = words.shift()!
    else if (word === '-d') body = words.shift()!
    else if (word === '-H') {
      const [name = '', value = ''] = words.shift()!.split(': ')
      headers[name] = value
    } else if (word === '-F') {
      const [name = '', value = ''] = words.shift()!.split('=')
      if (value.startsWith('@')) form.set(name, new Blob(['RIFF']), value.slice(1))
      else form.set(name, value)
      body = form
    } else if (word.startsWith('http')) url = word
    else throw new Error(`curl does not know ${word} in: ${line}`)
  }
  return { url, init: { method: method ?? (body === null ? 'GET' : 'POST'), headers, ...(body === null ? {} : { body }) } }
}

/** Refused for what is, or is not, on this machine: no other body would fare better. */
const stateOf: Readonly<Record<string, string>> = {
  'POST /api/models': 'the file has to be there',
  'POST /api/models/add-from-path': 'the file has to be there',
  'POST /api/settings/models/store': 'the folder has to be there',
  'POST /api/settings/models/store/migrate': 'the folder has to be there',
  'POST /api/install/services/svc-openwebui.service/repair': 'there is no such unit'
}

t.test('every curl line of the page makes a request that is not refused for its form', async t => {
  const gateway = await createTestGateway({
    builtins,
    runtime: new FakeEngineRuntime(),
    files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n', 'etc/svc/api.env': 'HF_ENDPOINT=http://127.0.0.1:9\n' }
  })
  t.teardown(() => gateway.close())
  const openapi = await (await gateway.fetch('/api/openapi.json')).json() as { readonly paths: Readonly<Record<string, object>> }
  const { curls } = await docsPage(openapi, `${gateway.baseUrl}/api/docs`)
  t.equal(curls.length, Object.values(openapi.paths).flatMap(methods => Object.keys(methods)).length, 'every operation has one')
  for (const line of curls) {
    // what lies outside of this machine is not asked
    const { url, init } = requestOf(line.replaceAll('https://api.openai.com', 'http://127.0.0.1:9').replaceAll('192.168.1.10', '127.0.0.1'))
    const name = `${init.method} ${new URL(url).pathname}`
    const leave = new AbortController()
    const answer = await fetch(url, { ...init, redirect: 'manual', signal: leave.signal })
    const text = answer.headers.get('content-type')?.startsWith('text/event-stream') === true ? '' : await answer.text()
    leave.abort()
    const isOfForm = [400, 405, 411, 413, 415, 422].includes(answer.status) && !(name in stateOf)
    t.notOk(isOfForm || answer.status === 500, `${name} answers ${answer.status}`, { line, text: text.slice(0, 300) })
  }
})

t.test('the docs page puts /v1 first, renders Markdown and filters its list by a search', async t => {
  const gateway = await createTestGateway({ builtins, runtime: new FakeEngineRuntime() })
  t.teardown(() => gateway.close())
  const openapi: unknown = await (await gateway.fetch('/api/openapi.json')).json()
  const page = await docsPage(openapi)

  t.match(page.groups()[0], 'Chat and text', 'what clients of models use comes first')
  t.ok(page.text.indexOf('/v1/chat/completions') < page.text.indexOf('/api/activity'))
  t.notMatch(page.groups().join(), /api-|v1-/, 'groups have names for people')
  t.ok(page.texts('code').includes('stream: true'), 'Markdown in descriptions is shown as what it means')
  t.notMatch(page.texts('p').join(), '`')

  page.search('audio/transcriptions')
  t.strictSame(page.groups(), ['Audio (1)'], 'a search leaves the groups that have something')
  page.search('slots')
  t.match(page.groups().join(), /Slots \(\d\d\)/, 'the name of a group finds all of it')
  page.search('no such words')
  t.strictSame(page.groups(), [])
  page.search('')
  t.ok(page.groups().length > 20)

  const behind = await docsPage(openapi, 'https://box.lan/gateway/api/docs#group-Slots')
  t.ok(behind.curls.includes('curl \'https://box.lan/gateway/api/slots\''), 'lines name the address that the page came from')
})
