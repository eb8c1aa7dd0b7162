// Measuring a model on a test file of the reader's: only then it is known how good its labels and scores are.
import { useState } from 'preact/hooks';
import { ColumnsField, Field, Trouble, Working } from './parts.tsx';
import { useStudio } from './use.ts';

const formatOf: Record<string, 'jsonl' | 'csv' | 'tsv' | 'svmlight' | 'xmc'> = {
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  csv: 'csv',
  tsv: 'tsv',
  svm: 'svmlight',
  txt: 'xmc',
};

export function Evaluate(props: {
  model?: string;
  /** Why one should, and what is said where that changed nothing. */
  words: string;
  afterwards: string;
  onEvaluated(): void;
}) {
  const { client, model } = useStudio();
  const [columns, setColumns] = useState('');
  const [state, setState] = useState<'idle' | 'busy' | 'done' | Error>('idle');
  const send = (file: File | undefined) => {
    if (!file) return;
    setState('busy');
    const format = formatOf[file.name.split('.').pop() ?? ''] ?? 'jsonl';
    const query = { format, columns: columns || undefined, resamples: 100 };
    client.evaluate(props.model ?? model, file, query).then(() => {
      setState('done');
      props.onEvaluated();
    }, setState);
  };
  return (
    <div class="stack tight">
      <p class="soft small">{state === 'done' ? props.afterwards : props.words}</p>
      {state === 'busy' ? (
        <Working words="Evaluating…" />
      ) : (
        <div class="fields">
          <Field name="Test file (JSONL, CSV, TSV)">
            <input type="file" onChange={({ currentTarget }) => send(currentTarget.files?.[0])} />
          </Field>
          <ColumnsField
            help="First, where they are not called text and labels."
            value={columns}
            change={setColumns}
          />
        </div>
      )}
      {state instanceof Error && <Trouble error={state} />}
    </div>
  );
}
