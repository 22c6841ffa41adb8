import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { root } from '../repository.js'

export interface Site {
  readonly origin: string
  /** Tells the page what to do, and resolves with what it tried. */
  readonly visit: (order: object) => Promise<Array<{ name: string, error?: string }> | null>
}

/** A web server that serves one page and the client that it imports, and a browser that opens it. */
export async function site (t: Test, packages: string): Promise<Site> {
  let order: object = {}
  let told = (_results: string): void => undefined
  const server = createServer((request, response) => {
    const path = request.url!
    if (path === '/order') return void response.setHeader('content-type', 'application/json').end(JSON.stringify(order))
    if (path === '/results') {
      let body = ''
      request.on('data', (chunk: Buffer) => { body += chunk.toString() })
      return void request.on('end', () => { response.end(); told(body) })
    }
    const file = path === '/' ? join(root, 'test/rings/browser/page.html') : join(packages, 'node_modules', path)
    const script = path.endsWith('.mjs')
    response.setHeader('content-type', script ? 'text/javascript' : 'text/html')
    createReadStream(file).on('error', () => response.writeHead(404).end()).pipe(response)
  })
  // a browser that takes a connection up again never meets its end
  server.keepAliveTimeout = 0
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    visit: async what => {
      order = what
      const results = new Promise<string>(resolve => { told = resolve })
      const profile = await mkdtemp(join(tmpdir(), 'svc-browser-'))
      const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--enable-logging=stderr', `--user-data-dir=${profile}`]
      const browser = spawn('chromium', [...flags, `${origin}/`], { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
      let log = ''
      browser.stderr.on('data', (chunk: Buffer) => { log = `${log}${chunk.toString()}`.slice(-2_000) })
      const ended = once(browser, 'exit')
      try {
        return JSON.parse(await Promise.race([results, ended.then(() => { throw new Error(`the browser has ended: ${log}`) })])) as Array<{ name: string }>
      } finally {
        // with every process that it started
        if (browser.exitCode === null) process.kill(-browser.pid!, 'SIGKILL')
        await ended
        await rm(profile, { recursive: true, force: true, maxRetries: 5 })
      }
    }
  }
}
