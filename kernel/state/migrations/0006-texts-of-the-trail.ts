import type { DatabaseMigration } from './migration.js'

const AT = '\'memory\', \'admin\''
const TOOLS = '\'memory_add\', \'memory_curate\', \'directive_create\', \'mental_model_create\''

/**
 * What agents had remembered stood in audit rows and in approvals that were over, where other agents read it and where it
 * outlived its deletion. Only these tools took such texts; the rows stay, without them. Calls that wait for an operator keep
 * their arguments and learn which of them are hidden in the end.
 */
export const textsOfTheTrail: DatabaseMigration = {
  version: 6,
  name: 'texts of memories leave audit rows and approvals',
  sql: `
    UPDATE activity_change SET before_json = NULL WHERE activity_id IN (
      SELECT id FROM activity WHERE action = 'mcp.tool.invoked' AND target IN (
        'memory/memory_add', 'admin/memory_add', 'memory/memory_curate', 'memory/directive_create', 'memory/mental_model_create'));

    UPDATE activity_change SET after_json = json_remove(after_json, '$.args') WHERE activity_id IN (
      SELECT a.id FROM activity a JOIN activity_change c ON c.activity_id = a.id
      WHERE a.action IN ('approval.approve', 'approval.deny') AND CASE WHEN json_valid(c.after_json) THEN
        json_extract(c.after_json, '$.server') IN (${AT}) AND json_extract(c.after_json, '$.tool') IN (${TOOLS}) END);

    UPDATE approvals SET args_json = '{}', result_json = CASE tool WHEN 'memory_add' THEN result_json END
      WHERE server IN (${AT}) AND tool IN (${TOOLS}) AND state NOT IN ('pending', 'approved');

    UPDATE approvals SET unwritten_json = CASE tool
        WHEN 'memory_add' THEN '["text","metadata"]'
        WHEN 'memory_curate' THEN '["text","reason"]'
        WHEN 'directive_create' THEN '["content"]'
        ELSE '["source_query"]' END
      WHERE server IN (${AT}) AND tool IN (${TOOLS}) AND state IN ('pending', 'approved');
  `
}
