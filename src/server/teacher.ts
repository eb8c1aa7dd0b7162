// The thread that teaches a saved model one more label, or has it forget one, and saves it in its place; those that serve
// it load it then.
import { workerData } from 'node:worker_threads';
import type { Label } from '../data/vocabulary.ts';
import { loadModel, saveModel } from '../store/folder.ts';
import { reply } from './thread.ts';

export interface Lesson {
  folder: string;
  change: { add: Label & { examples?: string[] } } | { remove: string };
}

async function teach({ folder, change }: Lesson): Promise<void> {
  const before = await loadModel(folder);
  const after = 'add' in change ? before.withLabels([change.add]) : before.withoutLabels([change.remove]);
  await saveModel(await after, folder);
}

const lesson = workerData as Lesson;
reply(teach(lesson), { [lesson.folder]: 'model' });
