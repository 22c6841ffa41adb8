import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { WebSocket } from 'ws'

/** A page of somebody else in headless Chromium, driven as its user does. */
export interface Page {
  readonly goto: (url: string) => Promise<void>
  /** What an expression comes to in the page, its promise awaited. */
  readonly read: <T>(expression: string) => Promise<T>
  /** Resolves with the first value of an expression that is not empty. Rejects after a while, with what the page shows. */
  readonly until: <T>(expression: string, what: string) => Promise<T>
  /** Types where the cursor is. */
  readonly type: (text: string) => Promise<void>
  readonly press: (key: 'Enter' | 'Escape') => Promise<void>
  /** Clicks in the middle of what a selector finds first. */
  readonly click: (selector: string) => Promise<void>
}

interface Answer {
  readonly id?: number
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

interface Evaluated {
  readonly result: { readonly value?: unknown }
  readonly exceptionDetails?: { readonly text: string, readonly exception?: { readonly description?: string } }
}

const LOOK_EVERY_MS = 100
const PATIENCE_MS = 300_000
const KEYS = { Enter: 13, Escape: 27 }

/** Ended with the test. */
export async function openPage (t: Test): Promise<Page> {
  const profile = await mkdtemp(join(tmpdir(), 'svc-chromium-'))
  const flags = [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--remote-debugging-port=0', '--window-size=1280,900', `--user-data-dir=${profile}`, 'about:blank'
  ]
  const browser = spawn('chromium', flags, { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  const ended = once(browser, 'exit')
  t.teardown(async () => {
    if (browser.exitCode === null) process.kill(-browser.pid!, 'SIGKILL')
    await ended
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  })
  const address = await new Promise<string>((resolve, reject) => {
    createInterface({ input: browser.stderr }).on('line', line => {
      const found = /^DevTools listening on (ws:\S+)/.exec(line)?.[1]
      if (found !== undefined) resolve(found)
    })
    void ended.then(() => reject(new Error('the browser has ended')))
  })
  const socket = new WebSocket(address)
  await once(socket, 'open')
  t.teardown(() => socket.terminate())
  return await driven(socket)
}

async function driven (socket: WebSocket): Promise<Page> {
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.on('message', data => {
    const answer = JSON.parse((data as Buffer).toString()) as Answer
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  /** Of the page, once there is one. */
  const own: { sessionId?: string } = {}
  let count = 0
  const send = async (method: string, params: object = {}): Promise<Record<string, unknown>> => {
    const id = ++count
    const answered = new Promise<Answer>(resolve => { waiting.set(id, resolve) })
    socket.send(JSON.stringify({ id, method, params, ...own }))
    const { result, error } = await answered
    waiting.delete(id)
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result!
  }
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
  own.sessionId = (await send('Target.attachToTarget', { targetId, flatten: true })).sessionId as string
  await send('Page.enable')
  const read: Page['read'] = async expression => {
    const how = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails: thrown } = await send('Runtime.evaluate', how) as unknown as Evaluated
    if (thrown !== undefined) throw new Error(thrown.exception?.description ?? thrown.text)
    return result.value as never
  }
  const until: Page['until'] = async (expression, what) => {
    for (const end = performance.now() + PATIENCE_MS; ;) {
      // a page that is on its way to another has nothing to read
      const value = await read(expression).catch(() => null)
      if (value !== null && value !== undefined && value !== false && value !== '' && value !== 0) return value as never
      if (performance.now() > end) throw new Error(`it did not come about: ${what}; the page shows: ${String(await read('document.body.innerText')).slice(0, 800)}`)
      await new Promise(resolve => { setTimeout(resolve, LOOK_EVERY_MS) })
    }
  }
  return {
    read,
    until,
    goto: async url => { await send('Page.navigate', { url }) },
    type: async text => { await send('Input.insertText', { text }) },
    press: async key => {
      const event = { key, code: key, windowsVirtualKeyCode: KEYS[key], ...(key === 'Enter' ? { text: '\r' } : {}) }
      await send('Input.dispatchKeyEvent', { type: 'keyDown', ...event })
      await send('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
    },
    click: async selector => {
      const find = `(() => { const at = document.querySelector(${JSON.stringify(selector)})?.getBoundingClientRect(); return at && at.width > 0 ? [at.x + at.width / 2, at.y + at.height / 2] : null })()`
      const [x, y] = await until<[number, number]>(find, `${selector} is shown`)
      for (const type of ['mousePressed', 'mouseReleased']) await send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 })
    }
  }
}
