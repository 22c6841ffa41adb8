import type { Core } from '../core.js'
import { PermanentFailure, type Operation } from '../operations/operation.js'
import type { Run, Work } from '../operations/operation-queue.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import type { Archive } from './archive.js'
import { cloneOf } from './clone.js'
import { exportArchive, type ExportOptions } from './export.js'
import { readArchive } from './read-archive.js'
import { dropUpload, ExportFile, readUpload } from './file-table.js'
import { fillBank, fillingOf, mustBeNew, type Brought, type Filling } from './import.js'
import type { Imported } from './importing.js'
import { mergeArchive, type ConflictMode } from './merge.js'
import { dropStage, newStage } from './stage.js'

/** The address of a file, below the base of the wire. Pure. */
export function downloadUrl (key: string): string {
  return `/v1/default/files/download/${key.split('/').map(encodeURIComponent).join('/')}`
}

export function exportWork (core: Core): Work {
  return async (operation, run) => {
    const options = operation.payload as ExportOptions
    const bank = bankOf(core, operation)
    const file = new ExportFile(core.store, bank.bank_id, operation.id)
    await exportArchive(core, bank, options, run, file, upto => file.reads(upto))
    const filename = `${bank.bank_id.replaceAll(/[^\w.-]/g, '_')}-${options.type === 'bank' ? 'bank' : 'documents'}.zip`
    run.commit(() => {
      const key = file.keep(filename)
      return { filename, byte_size: file.size, storage_key: key, download_url: downloadUrl(key) }
    })
  }
}

export interface ImportPayload {
  readonly onConflict: ConflictMode
  /** Null for documents into the bank of the operation. */
  readonly target: {
    readonly bankId: string
    readonly isNew: boolean
    readonly data: boolean
    readonly config: boolean
    readonly history: boolean
    /** Undefined in an operation of a release that knew none. */
    readonly aliases?: boolean
  } | null
}

export function importWork (core: Core): Work {
  return async (operation, run) => {
    const { onConflict, target } = operation.payload as ImportPayload
    const whole = await archiveOf(core, operation)
    const archive: Brought = {
      ...whole,
      ...target?.history === false && { records: [] },
      aliases: target?.aliases === true ? whole.aliases : undefined
    }
    if (target?.isNew === true) return await make(core, operation, run, target.bankId, fillingOf(core, archive, target, run))
    await mergeArchive(core, operation, run, archive, target === null
      ? { bankId: operation.bankId, makes: false, hasRest: false, data: true, config: false, onConflict }
      : { bankId: target.bankId, makes: true, hasRest: true, data: target.data, config: target.config, onConflict })
  }
}

/** Makes a bank: it is there as a whole or not at all. */
async function make (core: Core, operation: Operation, run: Run, bankId: string, filling: Filling): Promise<void> {
  mustBeNew(core, bankId)
  const stage = await newStage(core, operation.id)
  try {
    const { finish } = await fillBank(core, stage, filling)
    apply(core, run, () => {
      dropUpload(core.store, operation.id)
      return finish(bankId)
    })
  } catch (error) {
    if (!core.closing.aborted) await dropStage(core, operation.id)
    throw error
  }
}

export interface ClonePayload {
  readonly target: string
  readonly data: boolean
  readonly config: boolean
}

export function cloneWork (core: Core): Work {
  return async (operation, run) => {
    const { target, ...parts } = operation.payload as ClonePayload
    await make(core, operation, run, target, cloneOf(core, bankOf(core, operation), parts, run))
  }
}

/** In one transaction with the end of the operation; afterwards what is new gets its vectors. */
function apply (core: Core, run: Run, work: () => Imported): void {
  let imported: Imported | null = null
  run.commit(() => {
    imported = work()
    return imported.result
  })
  for (const listener of core.hooks.retained) listener(imported!.retained)
}

function bankOf (core: Core, { bankId }: Operation): BankRow {
  const bank = findBank(core.store, bankId)
  if (bank === undefined) throw new PermanentFailure(`Bank '${bankId}' not found`)
  return bank
}

async function archiveOf (core: Core, { id }: Operation): Promise<Archive> {
  const upload = readUpload(core.store, id)
  if (upload === null) throw new PermanentFailure('the uploaded archive is gone')
  try {
    return await readArchive(upload.bytes)
  } catch (error) {
    throw new PermanentFailure((error as Error).message)
  }
}
