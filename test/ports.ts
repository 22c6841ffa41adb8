import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Test } from 'tap'

/** Below the ports that a system gives to outgoing connections, above those that `fetch` refuses, beside those of slots. */
const FIRST = 7_000
const LAST = 7_999
const BLOCK = 20

/** Consecutive ports, both ends inclusive. */
export interface PortRange {
  readonly start: number
  readonly end: number
  /** The two keys of `[slots]` in svc.toml. */
  readonly toml: string
}

/**
 * Ports that nobody else has, several test files at once included, until the test or else the process ends. The first
 * port of each block is its lock: somebody listens on it and nobody uses it, so that a process that dies gives its block back.
 */
export async function reservePorts (t?: Test): Promise<PortRange> {
  const blocks = (LAST + 1 - FIRST) / BLOCK
  for (let i = 0; i < blocks; i++) {
    const lockPort = FIRST + (process.pid + i) % blocks * BLOCK
    const lock = await listen(lockPort)
    if (lock === null) continue
    const [start, end] = [lockPort + 1, lockPort + BLOCK - 1]
    if (await allFree(start, end)) {
      lock.unref()
      t?.teardown(() => close(lock))
      return { start, end, toml: `port_range_start = ${start}\nport_range_end = ${end}\n` }
    }
    await close(lock)
  }
  throw new Error(`no block of ${BLOCK} ports between ${FIRST} and ${LAST} is free`)
}

let own: Promise<PortRange> | undefined
let taken = 0

/** A port of this process's own on which nothing listens. It comes again after many others. */
export async function freePort (): Promise<number> {
  const { start, end } = await (own ??= reservePorts())
  const count = end - start + 1
  for (let i = 0; i < count; i++) {
    const port = start + taken++ % count
    if (await allFree(port, port)) return port
  }
  throw new Error(`all ports from ${start} to ${end} are in use`)
}

async function allFree (start: number, end: number): Promise<boolean> {
  for (let port = start; port <= end; port++) {
    const server = await listen(port)
    if (server === null) return false
    await close(server)
  }
  return true
}

async function listen (port: number): Promise<Server | null> {
  const server = createServer().listen(port, '127.0.0.1')
  return await once(server, 'listening').then(() => server, () => null)
}

async function close (server: Server): Promise<void> {
  server.close()
  await once(server, 'close')
}
