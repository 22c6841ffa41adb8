import type { Clock, Timer } from '../../contract/index.js'
import { HeldBytes } from './held-bytes.js'
import { SpoolFile } from './spool-file.js'
import type { UploadMemory } from './upload-memory.js'

/** What stays in memory before the sender is asked to wait, on the way in and on the way to the disk. */
const WINDOW_BYTES = 256 * 1024
/** What one upload may take of the shared memory besides, and in which steps. */
const MOST_HELD_BYTES = 24 * 1024 * 1024
const STEP_BYTES = 1024 * 1024
const READ_BYTES = 256 * 1024
/**
 * How long the sender waits for a reader before the rest goes to disk. A connection that is not read does not tell
 * that its client has left, and a client that leaves has to be noticed within 100 ms.
 */
const STALL_MS = 25

export interface UploadBufferOptions {
  readonly clock: Clock
  readonly folder: string
  readonly memory: UploadMemory
  /** The sender may go on. */
  readonly room: () => void
  /** The disk failed: nothing can be added or read any more. */
  readonly failed: (error: Error) => void
}

/**
 * The bytes of an upload between its client and its engine, in order. A reader that keeps up sets the pace; when
 * there is none yet, or it stands still, what comes waits in the memory that uploads share, and then goes through a file.
 * Memory is bounded in every case.
 */
export class UploadBuffer {
  readonly #options: UploadBufferOptions
  readonly #memory: Buffer[] = []
  /** What came behind it, before there was a reader. */
  readonly #waiting: HeldBytes
  #memoryBytes = 0
  /** Taken of the shared memory. */
  #held = 0
  #hasReader = false
  /** On its way to the file. */
  #outgoing: Buffer[] = []
  #outgoingBytes = 0
  #spilling = false
  #writing = false
  #file: SpoolFile | null = null
  #stall: Timer | null = null
  #waits = false
  #ended = false
  #error: Error | null = null
  #wake: (() => void) | null = null
  #spilledBytes = 0

  constructor (options: UploadBufferOptions) {
    this.#options = options
    this.#waiting = new HeldBytes(options.memory.blocks)
  }

  /** Bytes that went through the file. */
  get spilledBytes (): number { return this.#spilledBytes }

  /** False asks the sender to wait until `room` is called. */
  push (chunk: Buffer): boolean {
    if (this.#error !== null) return true
    if (this.#spilling) {
      this.#outgoing.push(chunk)
      this.#outgoingBytes += chunk.length
      void this.#write()
      this.#waits = this.#outgoingBytes >= WINDOW_BYTES
    } else {
      if (!this.#waiting.isEmpty || (this.#held > 0 && !this.#hasReader)) this.#waiting.push(chunk)
      else this.#memory.push(chunk)
      this.#memoryBytes += chunk.length
      // what has no reader, or one that is behind anyway, need not stand still before it may take more
      this.#waits = this.#isFull && ((this.#hasReader && this.#held === 0) || !this.#grow())
      if (this.#waits) this.#stall ??= this.#options.clock.setTimer(STALL_MS, () => this.#spill())
    }
    this.#awaken()
    return !this.#waits
  }

  end (): void {
    this.#ended = true
    this.#awaken()
  }

  /** The next bytes; null at the end. One call at a time. Rejects when the disk fails and after `close`. */
  async read (): Promise<Buffer | null> {
    this.#hasReader = true
    for (;;) {
      if (this.#error !== null) throw this.#error
      const chunk = this.#memory.shift() ?? this.#waiting.shift(READ_BYTES)
      if (chunk !== undefined) {
        this.#memoryBytes -= chunk.length
        if (!this.#spilling && this.#memoryBytes < (WINDOW_BYTES + this.#held) / 2) this.#makeRoom()
        if (this.#memoryBytes < WINDOW_BYTES) this.#giveBack()
        return chunk
      }
      const file = this.#file
      if (file !== null && file.unread > 0) {
        const bytes = await file.read(READ_BYTES).catch((error: Error) => this.#fail(error))
        if (this.#isDrained(file)) await this.#comeBack(file)
        return bytes
      }
      if (this.#ended && !this.#writing && this.#outgoing.length === 0) return null
      await new Promise<void>(resolve => { this.#wake = resolve })
    }
  }

  /** Drops everything; a reader that waits is rejected. */
  close (): void {
    this.#error ??= new Error('the upload was given up')
    this.#stall?.cancel()
    this.#memory.length = 0
    this.#waiting.clear()
    this.#giveBack()
    this.#outgoing = []
    this.#awaken()
    const file = this.#file
    this.#file = null
    // closes behind what is under way on it
    file?.close().catch(() => {})
  }

  #spill (): void {
    this.#stall = null
    if (this.#error !== null) return
    this.#spilling = this.#isFull && !this.#grow()
    this.#makeRoom()
  }

  get #isFull (): boolean { return this.#memoryBytes >= WINDOW_BYTES + this.#held }

  #grow (): boolean {
    if (this.#held + STEP_BYTES > MOST_HELD_BYTES || !this.#options.memory.take(STEP_BYTES)) return false
    this.#held += STEP_BYTES
    return true
  }

  #giveBack (): void {
    if (this.#held > 0) this.#options.memory.give(this.#held)
    this.#held = 0
  }

  async #write (): Promise<void> {
    if (this.#writing) return
    this.#writing = true
    try {
      while (this.#outgoing.length > 0) {
        const file = this.#file ??= await this.#open()
        const chunks = this.#outgoing
        this.#outgoing = []
        this.#spilledBytes += this.#outgoingBytes
        this.#outgoingBytes = 0
        await file.append(chunks)
        if (this.#waits) this.#makeRoom()
        this.#awaken()
      }
    } catch (error) {
      this.#tell(error as Error)
    } finally {
      this.#writing = false
      this.#awaken()
    }
  }

  async #open (): Promise<SpoolFile> {
    const file = await SpoolFile.open(this.#options.folder)
    if (this.#error === null) return file
    await file.close()
    throw this.#error
  }

  /** The reader has caught up with the file: unless more has come meanwhile, it sets the pace again. */
  async #comeBack (file: SpoolFile): Promise<void> {
    this.#writing = true
    await file.rewind().catch((error: Error) => this.#fail(error)).finally(() => { this.#writing = false })
    this.#spilling = this.#outgoing.length > 0
    if (this.#spilling) void this.#write()
  }

  #isDrained (file: SpoolFile): boolean {
    return file.unread === 0 && !this.#writing && this.#outgoing.length === 0
  }

  #makeRoom (): void {
    this.#stall?.cancel()
    this.#stall = null
    if (!this.#waits) return
    this.#waits = false
    this.#options.room()
  }

  #fail (error: Error): never {
    this.#tell(error)
    throw this.#error!
  }

  #tell (error: Error): void {
    if (this.#error !== null) return
    this.#error = error
    this.#awaken()
    this.#options.failed(error)
  }

  #awaken (): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
