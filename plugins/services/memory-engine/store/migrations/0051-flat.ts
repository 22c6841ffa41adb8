import type { MemoryMigration } from './migrate.js'

const BANK_ID = '(SELECT bank_id FROM banks WHERE seq = OLD.bank)'
/** The range of the keys that begin with the bank's folder. */
const OF_BANK = `key > 'banks/' || ${BANK_ID} || '/' AND key < 'banks/' || ${BANK_ID} || '0'`

/**
 * What is asked for each operation, item or deleted memory is found by an index, however many others wait, are over or say the
 * same. Of tags that are long the beginning is enough.
 */
export const flat: MemoryMigration = {
  version: 51,
  name: 'cost of one among many',
  sql: `
    CREATE INDEX operations_status ON operations (bank_id, status, seq);
    CREATE INDEX operations_type ON operations (bank_id, type, seq);
    CREATE INDEX operations_paused ON operations (next_retry_at) WHERE status = 'pending' AND next_retry_at IS NOT NULL;
    CREATE INDEX operations_refreshes ON operations (bank_id, mental_model_id, seq) WHERE status = 'pending' AND mental_model_id IS NOT NULL;
    CREATE INDEX operations_imports ON operations (type)
      WHERE status IN ('pending', 'processing') AND type IN ('import_documents', 'import_bank');
    CREATE INDEX operations_parts ON operations (parent_id, status, items_count) WHERE parent_id IS NOT NULL;
    CREATE INDEX operations_failed ON operations (parent_id, sub_batch_index) WHERE status = 'failed' AND parent_id IS NOT NULL;
    CREATE INDEX webhook_deliveries_over ON webhook_deliveries (webhook, seq) WHERE status <> 'pending';
    CREATE INDEX audit_log_kept ON audit_log (bank_id, seq);
    CREATE INDEX memories_open ON memories (bank)
      WHERE state = 'valid' AND fact_type <> 'observation' AND consolidated_at IS NULL AND consolidation_failed_at IS NULL;
    CREATE INDEX memories_updated ON memories (bank, updated_at) WHERE state = 'valid';
    CREATE INDEX memories_said ON memories (bank, text_hash, substr(tags, 1, 100)) WHERE state = 'valid' AND fact_type <> 'observation';
    CREATE INDEX memories_said_in ON memories (document, text_hash);
    CREATE INDEX memories_replaced ON memories (document, text_hash) WHERE chunk IS NULL AND document IS NOT NULL;
    DROP INDEX documents_hash;
    CREATE INDEX documents_said ON documents (bank, content_hash, substr(tags, 1, 100));
    CREATE INDEX documents_changed ON documents (bank, text_length) WHERE content_hash = '';
    DROP TRIGGER exports_of_deleted;
    CREATE TRIGGER exports_of_deleted AFTER DELETE ON memories
    WHEN EXISTS (SELECT 1 FROM operation_files WHERE ${OF_BANK}) AND NOT EXISTS (SELECT 1 FROM replacing) BEGIN
      DELETE FROM operation_files WHERE ${OF_BANK} AND (read_upto IS NULL OR read_upto >= OLD.document)
        AND (SELECT bank_id FROM operations WHERE id = operation) = ${BANK_ID};
    END
  `
}
