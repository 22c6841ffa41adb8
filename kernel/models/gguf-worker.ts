import { parentPort } from 'node:worker_threads'
import { readHeader, type GgufHeader } from './gguf-header.js'

export interface HeaderRequest { readonly id: number, readonly path: string }

export type HeaderReply =
  | { readonly id: number, readonly header: GgufHeader }
  | { readonly id: number, readonly problem: string, readonly code: string | null }

parentPort!.on('message', ({ id, path }: HeaderRequest) => {
  void readHeader(path).then(
    (header): HeaderReply => ({ id, header }),
    (error: NodeJS.ErrnoException): HeaderReply => ({ id, problem: error.message, code: error.code ?? null })
  ).then(reply => parentPort!.postMessage(reply))
})
