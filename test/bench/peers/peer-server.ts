import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../ports.js'
import type { ChatCall } from '../load.js'
import type { Peer, PeerPlace } from './peer-programs.js'
import { processUse, useOf, type ProcessUse } from '../process-use.js'
import { ended, type BenchServer } from '../servers.js'

export interface PeerServer {
  readonly server: BenchServer
  readonly call: ChatCall
  /** From the start of its process to its first good answer. */
  readonly startMs: number
}

const LONGEST_START_MS = 300_000
const PAUSE_MS = 10

/** Starts a peer and waits for its first good answer. Throws when there is none. */
export async function startPeer (peer: Peer, path: string, home: string, upstream: string, cold = false): Promise<PeerServer> {
  const port = await freePort()
  const folder = join(home, `${peer.program}-${port}`)
  mkdirSync(folder, { recursive: true })
  const place: PeerPlace = { port, folder, upstream }
  const { args, env = {} } = cold ? peer.coldLaunch!(place) : peer.launch(place)
  const call = peer.call(place)
  const begun = performance.now()
  const child = spawn(path, [...args], { cwd: folder, env: { ...process.env, ...env }, stdio: 'ignore' })
  let failure: Error | null = null
  child.on('error', error => { failure = error })
  const origin = `http://127.0.0.1:${port}`
  const stop = (): Promise<void> => ended(child, () => { child.kill('SIGTERM') })
  // a cold one is asked for nothing that would start its engine
  while (cold ? !await listens(origin) : !await answers(origin, call)) {
    const isOver = child.exitCode !== null || failure !== null
    if (isOver || performance.now() - begun > LONGEST_START_MS) {
      await stop()
      throw new Error(`${peer.name} gave no good answer (${path} ${args.join(' ')})`, { cause: failure })
    }
    await new Promise(resolve => { setTimeout(resolve, PAUSE_MS) })
  }
  const startMs = performance.now() - begun
  const use = (): ProcessUse => peer.isOneProcess === true ? useOf(child.pid!) : processUse(child.pid!)
  const server: BenchServer = {
    origin, port, ready: {}, memory: () => Promise.resolve(use().rss), cpuMs: () => Promise.resolve(use().cpuMs), stop
  }
  return { server, call, startMs }
}

function listens (origin: string): Promise<boolean> {
  return fetch(`${origin}/`).then(() => true, () => false)
}

/** One chat request, answered in full. */
export function answers (origin: string, { model, headers = {} }: ChatCall): Promise<boolean> {
  return fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] })
  }).then(async answer => {
    await answer.arrayBuffer()
    return answer.status === 200
  }, () => false)
}
