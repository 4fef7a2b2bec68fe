//! Input that means harm, by every way in: payloads, paths, job objects, commit
//! documents, settings, schemas, templates, requirements, arguments, plain-SQL
//! rows, what lies on the disk, what programs say.
//!
//! Each has the one answer that is documented: refused with an exit code and a word
//! about what is wrong, or failed for good and alone. And for all of them: nobody
//! panics, nothing outside the root is touched, nothing is left inside, nothing
//! reaches the terminal that it would act on, and a good job behind it completes.

mod hostile {
    mod arguments;
    mod case;
    mod disk;
    mod documents;
    mod job_objects;
    mod names;
    mod paths;
    mod payloads;
    mod programs;
    mod rows;
    mod run;
    mod schemas;
    mod settings;
    mod tally;
    mod templates;
    mod world;
}
