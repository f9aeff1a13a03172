//! Messages of SQL Server Agent's procedures: jobs, steps, schedules, categories, operators.

rows! {
    14200, 16, INVALID_PARAMETER = "The specified '{parameter}' is invalid.";
    14226, 10, HISTORY_PURGED = "{count} history entries purged.";
    14234, 16, NOT_IN_LIST_OF =
        "The specified '{parameter}' is invalid (valid values are returned by {procedure}).";
    14235, 16, BAD_STEP_REFERENCE =
        "The specified '{parameter}' is invalid (valid values are greater than 0 but excluding {step}).";
    14236, 10, STEP_NOT_THERE_YET = "Warning: Non-existent step referenced by {parameter}.";
    14243, 10, JOB_STARTED = "Job '{job}' started successfully.";
    14250, 16, NAME_TOO_LONG =
        "The specified {parameter} is too long. It must contain no more than {most} characters.";
    14254, 10, JOB_STOPPED = "Job '{job}' stopped successfully.";
    14256, 16, JOB_WITHOUT_SERVER_TO_START =
        "Cannot start the job \"{job}\" (ID {id}) because it does not have any job server or servers defined. Associate \
         the job with a job server by calling sp_add_jobserver.";
    14257, 16, JOB_WITHOUT_SERVER_TO_STOP =
        "Cannot stop the job \"{job}\" (ID {id}) because it does not have any job server or servers defined. Associate \
         the job with a job server by calling sp_add_jobserver.";
    14261, 16, EXISTS_ALREADY = "The specified {parameter} ('{name}') already exists.";
    14262, 16, DOES_NOT_EXIST = "The specified {parameter} ('{name}') does not exist.";
    14266, 16, NOT_ONE_OF =
        "The specified '{parameter}' is invalid (valid values are: {values}).";
    14269, 16, TARGETED_ALREADY = "Job '{job}' is already targeted at server '{server}'.";
    14270, 16, NOT_TARGETED = "Job '{job}' is not currently targeted at server '{server}'.";
    14276, 16, PERMANENT_CATEGORY =
        "'{category}' is a permanent {class} category and cannot be deleted.";
    14278, 16, INVALID_SCHEDULE = "The schedule for this job is invalid (reason: {reason}).";
    14284, 16, NEW_JOB_WITH_ID =
        "Cannot specify a job ID for a new job. An ID will be assigned by the procedure.";
    14285, 16, MULTISERVER_CATEGORY = "Cannot add a local job to a multiserver job category.";
    14287, 16, INVALID_PART = "The '{parameter}' supplied has an invalid {part}.";
    14288, 16, BEFORE = "{parameter} cannot be before {other}.";
    14294, 16, WHICH_JOB = "Supply either {id} or {name} to identify the job.";
    14295, 16, ON_DEMAND = "Frequency Type 0x2 (OnDemand) is no longer supported.";
    14371, 16, SEVERAL_SCHEDULES =
        "There are two or more schedules named \"{schedule}\". Specify {id} instead of {name} to uniquely identify the \
         schedule.";
    14372, 16, SCHEDULE_IN_USE =
        "The schedule was not deleted because it is being used by one or more jobs.";
    14373, 16, WHICH_SCHEDULE = "Supply either {id} or {name} to identify the schedule.";
    14374, 16, NOT_A_SCHEDULE_OF =
        "The specified schedule name \"{schedule}\" is not associated with the job \"{job}\".";
    14375, 16, SEVERAL_SCHEDULES_OF_JOB_TO_UPDATE =
        "More than one schedule named \"{schedule}\" is attached to job \"{job}\". Use \"sp_update_schedule\" to update \
         schedules.";
    14376, 16, SEVERAL_SCHEDULES_OF_JOB =
        "More than one schedule named \"{schedule}\" is attached to job \"{job}\". Use \"sp_detach_schedule\" to remove \
         schedules from a job.";
    14392, 16, HISTORY_OF_ANOTHER =
        "Only owner of a job or members of role sysadmin or SQLAgentOperatorRole can purge history of the job.";
    14393, 16, JOB_OF_ANOTHER_TO_START =
        "Only owner of a job or members of role sysadmin or SQLAgentOperatorRole can start and stop the job.";
    14517, 16, PROXY_OF_TSQL = "A proxy account is not allowed for a Transact-SQL subsystem.";
    14524, 16, ONE_OF_TWO = "Supply either {first} or {second}.";
    14525, 16, JOB_OF_ANOTHER =
        "Only members of sysadmin role are allowed to update or delete jobs owned by a different login.";
    14526, 16, UNKNOWN_CATEGORY =
        "The specified category \"{category}\" does not exist for category class \"{class}\".";
    14528, 16, JOB_WITHOUT_STEPS = "Job \"{job}\" has no steps defined.";
    14545, 16, NOT_FOR_STEP_TYPE =
        "The {parameter} parameter is not valid for a job step of type '{subsystem}'.";
    14607, 16, UNKNOWN_MAIL_PROFILE = "profile name is not valid";
    14608, 16, EITHER_OF_TWO = "Either {first} or {second} parameter needs to be supplied";
    14636, 16, NO_MAIL_PROFILE =
        "No global profile is configured. Specify a profile name in the @profile_name parameter.";
    22022, 16, AGENT_REFUSES = "SQLServerAgent Error: {reason}.";
}
