import type { MemoryMigration } from './migrate.js'

const scopeOf = (row: 'NEW' | 'OLD'): string =>
  `(SELECT json_group_array(value) FROM (SELECT DISTINCT value FROM json_each(${row}.tags) ORDER BY value))`
const isCounted = (row: 'NEW' | 'OLD'): string => `${row}.fact_type = 'observation' AND ${row}.state = 'valid'`
const count = (condition = 'true'): string => `
  INSERT INTO observation_scopes (bank, scope, count) SELECT NEW.bank, ${scopeOf('NEW')}, 1 WHERE ${condition}
    ON CONFLICT (bank, scope) DO UPDATE SET count = count + 1;`
const discount = (condition = 'true'): string => `
  UPDATE observation_scopes SET count = count - 1 WHERE bank = OLD.bank AND scope = ${scopeOf('OLD')} AND ${condition};
  DELETE FROM observation_scopes WHERE bank = OLD.bank AND scope = ${scopeOf('OLD')} AND count <= 0;`

/**
 * What lists and exports are read from in pages. A scope is the tags of observations, sorted, as JSON: triggers count how many
 * valid ones each has, so that no writer can forget to.
 */
export const pages: MemoryMigration = {
  version: 40,
  name: 'pages',
  sql: `
    CREATE INDEX documents_bank ON documents (bank);
    CREATE INDEX mental_models_bank ON mental_models (bank);
    CREATE INDEX knowledge_nodes_bank ON knowledge_nodes (bank, sort_order, seq);
    CREATE INDEX knowledge_nodes_tree ON knowledge_nodes (bank, parent, sort_order, seq);
    CREATE INDEX memories_observations ON memories (bank) WHERE fact_type = 'observation';
    CREATE TABLE observation_scopes (
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      scope TEXT NOT NULL,
      count INTEGER NOT NULL,
      PRIMARY KEY (bank, scope)
    ) WITHOUT ROWID;
    CREATE INDEX observation_scopes_count ON observation_scopes (bank, count DESC, scope);
    INSERT INTO observation_scopes (bank, scope, count) SELECT bank, scope, sum(n) FROM (
      SELECT bank, n, (SELECT json_group_array(value) FROM (SELECT DISTINCT value FROM json_each(tags) ORDER BY value)) AS scope
      FROM (SELECT bank, tags, count(*) AS n FROM memories WHERE fact_type = 'observation' AND state = 'valid' GROUP BY bank, tags)
    ) GROUP BY bank, scope;
    CREATE TRIGGER observation_made AFTER INSERT ON memories WHEN ${isCounted('NEW')} BEGIN ${count()} END;
    CREATE TRIGGER observation_gone AFTER DELETE ON memories WHEN ${isCounted('OLD')} BEGIN ${discount()} END;
    CREATE TRIGGER observation_moved AFTER UPDATE OF bank, tags, fact_type, state ON memories
    WHEN (${isCounted('OLD')}) OR (${isCounted('NEW')}) BEGIN
      ${discount(isCounted('OLD'))}
      ${count(isCounted('NEW'))}
    END;
    CREATE TABLE operation_file_parts (
      operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
      part INTEGER NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (operation, part)
    );
    CREATE TRIGGER parts_of_file AFTER DELETE ON operation_files BEGIN
      DELETE FROM operation_file_parts WHERE operation = OLD.operation;
    END;
    CREATE TRIGGER parts_of_ended AFTER UPDATE OF status ON operations WHEN NEW.status IN ('cancelled', 'failed') BEGIN
      DELETE FROM operation_file_parts WHERE operation = NEW.id;
    END
  `
}
