import { accessSync, constants, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ChatCall } from '../load.js'

/** Where a peer is put: its own port and folder, and who answers behind it. */
export interface PeerPlace {
  readonly port: number
  readonly folder: string
  readonly upstream: string
}

export interface PeerLaunch {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Another gateway, as its own documents say that it is started. */
export interface Peer {
  readonly name: string
  readonly program: string
  /** It has no workers: what it started are engines, and none of its own use. */
  readonly isOneProcess?: boolean
  readonly call: (place: PeerPlace) => ChatCall
  readonly launch: (place: PeerPlace) => PeerLaunch
  /** In front of an engine that it starts itself at the first request; absent where a peer has no engines. */
  readonly coldLaunch?: (place: PeerPlace) => PeerLaunch
}

const standIn = fileURLToPath(new URL('../stand-in.js', import.meta.url))

function write (folder: string, name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const agent = (): ChatCall => ({ model: 'agent' })

/** Its limit of ten requests at a time is lifted: it would answer the others with errors. */
function llamaSwap ({ port, folder }: PeerPlace, model: string): PeerLaunch {
  const file = write(folder, 'llama-swap.yaml', `logLevel: error\nmodels:\n  agent:\n    checkEndpoint: /health\n    concurrencyLimit: 100000\n${model}`)
  return { args: ['--config', file, '--listen', `127.0.0.1:${port}`] }
}

const known: readonly Peer[] = [{
  name: 'llama-swap',
  program: 'llama-swap',
  call: agent,
  launch: place => llamaSwap(place, `    cmd: sleep 1000000\n    proxy: ${place.upstream}\n`),
  coldLaunch: place => llamaSwap(place, `    cmd: ${process.execPath} ${standIn} \${PORT}\n`)
}, {
  name: 'LiteLLM',
  program: 'litellm',
  call: agent,
  launch: ({ port, folder, upstream }) => ({
    args: ['--host', '127.0.0.1', '--port', String(port), '--config', write(folder, 'litellm.yaml',
      `model_list:\n  - model_name: agent\n    litellm_params:\n      model: openai/agent\n      api_base: ${upstream}/v1\n      api_key: none\nlitellm_settings:\n  telemetry: false\n`)],
    env: { LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true', LITELLM_LOCAL_MODEL_COST_MAP: 'true', LITELLM_LOG: 'ERROR' }
  })
}, {
  name: 'Portkey',
  program: 'portkey',
  call: ({ upstream }) => ({
    model: 'agent', headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstream}/v1`, 'authorization': 'Bearer none' }
  }),
  launch: ({ port }) => ({ args: [`--port=${port}`, '--headless'], env: { PORT: String(port) } })
}]

/** Peers that are here, with the path of each one's program. */
export function peersHere (): ReadonlyArray<{ readonly peer: Peer, readonly path: string }> {
  return known.flatMap(peer => {
    const path = programOf(peer.program)
    return path === null ? [] : [{ peer, path }]
  })
}

/** What `SVC_BENCH_<NAME>` says, else what is on PATH; null for neither. */
export function programOf (name: string): string | null {
  const named = process.env[`SVC_BENCH_${name.toUpperCase().replaceAll('-', '_')}`]
  if (named !== undefined && named !== '') return named
  const places = (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, name))
  return places.find(isProgram) ?? null
}

function isProgram (path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
