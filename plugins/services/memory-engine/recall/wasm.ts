/** What of it is used; the types of Node do not have it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

export interface WasmMemory {
  readonly buffer: ArrayBuffer
  /** By pages of 64 KiB. */
  grow (pages: number): void
}

export const PAGE_BYTES = 65_536

/**
 * What a module exports.
 * @param module in base64
 */
export function wasmExports<T extends { readonly memory: WasmMemory }> (module: string): T {
  return new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(module, 'base64'))).exports as T
}

/** Makes the memory as large as that. */
export function makeRoom (memory: WasmMemory, bytes: number): void {
  const missing = bytes - memory.buffer.byteLength
  if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES))
}
